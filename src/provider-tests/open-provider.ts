import { isDefined, type Provider, type Target } from '../providers/contract.ts'
import { kit, type Plugin } from '../providers/kit.ts'

/**
 * Opens a provider as the server does: options it does not have are a mistake, and so is what it says to the operator.
 *
 * @param plugin one that returns several providers needs the type of one of them
 * @throws Error when the options are wrong
 */
export async function openProvider(
  plugin: Plugin | Provider,
  options: Record<string, unknown>,
  type?: string,
): Promise<Target> {
  const made = typeof plugin === 'function' ? await plugin(kit) : plugin
  const all = 'type' in made ? [made] : made
  const provider = type === undefined ? all[0] : all.find(one => one.type === type)
  if (!isDefined(provider)) throw new Error('the plugin must return what defineProvider of its kit made')
  const config = provider.config.strict().parse(options)
  const problem = provider.validate?.(config)
  if (problem !== undefined) throw new Error(problem)
  const warn = (message: string) => {
    throw new Error(message)
  }
  return provider.open(config, { name: 'Default', warn })
}
