import { describeThrown } from '../errors.ts'
import { secretsOfProxy } from '../http/proxy/address.ts'
import { isRecord } from '../members.ts'
import { collectMarked, mapPaths } from '../options.ts'
import * as z from '../packages/zod.ts'
import type { Provider } from '../providers/contract.ts'
import { loadProvider, PROVIDER_TYPES } from '../providers/registry.ts'
import type { DestinationName } from '../uploader/destinations.ts'
import { destinationSchema } from './destination.ts'
import { parseReporting } from './issues.ts'
import { NO_PLUGINS, type Plugins } from './plugins.ts'
import type { OnProblem } from './problems.ts'
import { configSchema } from './schema.ts'
import { suggest } from './suggest.ts'

/** A destination of the configuration whose options have been checked. */
export interface DestinationConfig {
  readonly type: string
  readonly name: string
  readonly provider: Provider
  /** The entry of the setting `plugins` that the provider comes from. */
  readonly plugin?: string | undefined
  /** The provider's own options. */
  readonly options: Record<string, unknown>
  /** The options that every destination has. */
  readonly common: z.output<typeof destinationSchema>
  readonly secrets: readonly string[]
  /** Files of the server itself that the options refer to. */
  readonly files: readonly string[]
}

/** The schema of a whole file, with the options of the given providers (default: all of them) and of plugins. */
export async function wholeSchema(
  types: readonly string[] = PROVIDER_TYPES,
  plugins: Plugins = NO_PLUGINS,
): Promise<z.ZodObject> {
  const builtIn = await Promise.all(types.map(loadProvider))
  const members: Record<string, z.ZodType> = {}
  for (const provider of [...builtIn, ...plugins.providers.values()])
    if (provider) members[provider.type] = z.record(z.string().min(1), optionsOf(provider)).optional()
  return configSchema.extend({
    providers: z
      .strictObject(members)
      .default({})
      .describe(
        'Destinations, as providers.<type>.<configName>. Default: one that stores files in the data directory.',
      ),
  })
}

/** The schema of the options of a destination. */
export function optionsOf(provider: Provider): z.ZodObject {
  const { caFile, insecureTls, ...common } = destinationSchema.shape
  const ofTls = provider.connects === false ? {} : { caFile, insecureTls }
  return z.strictObject({ ...common, ...ofTls, ...provider.config.shape })
}

/** The destinations that `providers` contains, valid or not. */
export function listNamed(providers: unknown): DestinationName[] {
  return entriesOf(providers).flatMap(([type, configurations]) =>
    entriesOf(configurations).map(([name]) => ({ type, name })),
  )
}

function entriesOf(value: unknown): [string, unknown][] {
  return isRecord(value) ? Object.entries(value) : []
}

/** Checks every destination against the options of its provider. */
export async function readDestinations(
  providers: unknown,
  resolvePath: (path: string) => string,
  report: OnProblem,
  plugins: Plugins = NO_PLUGINS,
): Promise<DestinationConfig[]> {
  const read: DestinationConfig[] = []
  for (const [type, configurations] of entriesOf(providers)) {
    const provider = plugins.providers.get(type) ?? (await loadProvider(type))
    if (provider?.type !== type) {
      const hint = provider
        ? `. It is called "${provider.type}" here`
        : suggest(type, [...PROVIDER_TYPES, ...plugins.providers.keys()])
      if (plugins.isComplete) report(`providers.${type}`, `is not a provider${hint}`)
      continue
    }
    const plugin = plugins.origins.get(type)
    for (const [name, raw] of entriesOf(configurations)) {
      const path = `providers.${type}.${name}`
      try {
        const one = readDestination(provider, name, raw, resolvePath, (inner, message) =>
          report(inner ? `${path}.${inner}` : path, message),
        )
        if (one) read.push({ ...one, plugin })
      } catch (error) {
        // The schema of a plugin may throw.
        if (plugin === undefined) throw error
        report(path, `can't be checked, because the plugin "${plugin}" failed: ${describeThrown(error)}`)
      }
    }
  }
  return read
}

/** @param report gets errors with the path of the option, empty for the destination itself */
export function readDestination(
  provider: Provider,
  name: string,
  raw: unknown,
  resolvePath: (path: string) => string,
  report: OnProblem,
): DestinationConfig | undefined {
  const schema = optionsOf(provider)
  // Links of a private bucket redirect, so users need not set both. With a URL prefix, it is public.
  const isPrivate = isRecord(raw) && raw['link'] === 'redirect' && raw['urlPrefix'] === undefined
  const parsed = parseReporting(schema, isPrivate ? { ...provider.redirected, ...raw } : raw, report)
  if (!parsed) return undefined
  const all: Record<string, unknown> = mapPaths(schema, parsed, resolvePath)
  const pick = (isCommon: boolean) =>
    Object.fromEntries(Object.entries(all).filter(([key]) => key in destinationSchema.shape === isCommon))
  const options = pick(false)
  const problem: unknown = provider.validate?.(options)
  if (typeof problem === 'string') report('', problem)
  else if (problem !== undefined) throw new Error('its "validate" must return a sentence, or undefined')
  return {
    type: provider.type,
    name,
    provider,
    options,
    // The cast is safe: `destinationSchema` has validated exactly the options with these names.
    common: pick(true) as DestinationConfig['common'],
    secrets: secretsIn(schema, all),
    files: collectMarked(schema, all, 'file'),
  }
}

/** All secrets of a configuration, which must never be shown. */
export function secretsIn(schema: z.ZodType, value: unknown): string[] {
  return [
    ...collectMarked(schema, value, 'secret'),
    ...collectMarked(schema, value, 'proxy').flatMap(secretsOfProxy),
  ]
}
