import type { ConnectionSettings } from '../http/connections.ts'
import { isDefined, type Provider, type Target } from '../providers/contract.ts'
import { kit, type Plugin } from '../providers/kit.ts'

/**
 * Opens a provider as the server does. Unknown options and warnings to the operator are errors.
 *
 * @param type required if the plugin returns several providers
 * @throws Error if the options are invalid
 */
export async function openProvider(
  plugin: Plugin | Provider,
  options: Record<string, unknown>,
  type?: string,
): Promise<Target> {
  const made = typeof plugin === 'function' ? await plugin(kit) : plugin
  const all = 'type' in made ? [made] : made
  const provider = type === undefined ? all[0] : all.find(one => one.type === type)
  if (!isDefined(provider))
    throw new Error('the plugin must return a provider made by defineProvider of the kit that it received')
  const { caFile, insecureTls, ...own } = options as ConnectionSettings & Record<string, unknown>
  const config = provider.config.strict().parse(own)
  const problem = provider.validate?.(config)
  if (problem !== undefined) throw new Error(problem)
  const warn = (message: string) => {
    throw new Error(message)
  }
  return provider.open(config, { name: 'Default', warn, caFile, insecureTls })
}
