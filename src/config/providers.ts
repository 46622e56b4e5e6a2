import { describeThrown, UploadError } from '../errors.ts'
import { secretsOfProxy } from '../http/proxy/address.ts'
import { collectMarked, mapPaths } from '../options.ts'
import * as z from '../packages/zod.ts'
import type { Provider } from '../providers/contract.ts'
import { canonicalType, loadProvider, PROVIDER_TYPES } from '../providers/registry.ts'
import { chooseDestination, idOf, type Named, splitId } from '../uploader/delivery/destinations.ts'
import { KEYLESS } from '../uploader/input.ts'
import { destinationSchema } from './destination.ts'
import type { Report } from './interpolate.ts'
import { reportIssues, suggest } from './issues.ts'
import { isRecord } from './json.ts'
import { NO_PLUGINS, type Plugins } from './plugins.ts'
import { configSchema } from './schema.ts'

/** One saved configuration, checked. */
export interface DestinationConfig {
  readonly type: string
  readonly name: string
  readonly provider: Provider
  /** What the setting `plugins` names the plugin by that the provider is of. */
  readonly plugin?: string | undefined
  /** The provider's own options. */
  readonly options: Record<string, unknown>
  /** Options that every destination has. */
  readonly common: z.output<typeof destinationSchema>
  readonly secrets: readonly string[]
  /** Files of the server itself that its options name. */
  readonly files: readonly string[]
}

/** The schema of a whole file, with the options of the given providers (default: all of them) and of plugins. */
export async function wholeSchema(
  types: readonly string[] = PROVIDER_TYPES,
  plugins: Plugins = NO_PLUGINS,
): Promise<z.ZodObject> {
  const members: Record<string, z.ZodType> = {}
  for (const type of new Set(types)) {
    const provider = await loadProvider(type)
    if (provider) members[type] = z.record(z.string().min(1), optionsOf(provider)).optional()
  }
  for (const provider of plugins.providers.values())
    members[provider.type] = z.record(z.string().min(1), optionsOf(provider)).optional()
  return configSchema.extend({
    providers: z
      .strictObject(members)
      .default({})
      .describe('Saved configurations: providers.<type>.<configName>.'),
  })
}

function optionsOf(provider: Provider): z.ZodObject {
  return z.strictObject({ ...destinationSchema.shape, ...provider.config.shape })
}

/** The saved configurations that `providers` names, whatever is wrong with them. */
export function listNamed(providers: unknown): Named[] {
  return entriesOf(providers).flatMap(([id, configurations]) =>
    entriesOf(configurations).map(([name]) => ({ type: canonicalType(id), name })),
  )
}

function entriesOf(value: unknown): [string, unknown][] {
  return isRecord(value) ? Object.entries(value) : []
}

/** Checks every saved configuration against the options of its provider. */
export async function readDestinations(
  providers: unknown,
  resolvePath: (path: string) => string,
  report: Report,
  plugins: Plugins = NO_PLUGINS,
): Promise<DestinationConfig[]> {
  const read: DestinationConfig[] = []
  for (const [id, configurations] of entriesOf(providers)) {
    const provider = plugins.providers.get(id) ?? (await loadProvider(id))
    if (!provider) {
      const known = [...PROVIDER_TYPES, ...plugins.providers.keys()]
      if (plugins.isComplete) report(`providers.${id}`, `is no provider of this version${suggest(id, known)}`)
      continue
    }
    for (const [name, raw] of entriesOf(configurations)) {
      const path = `providers.${id}.${name}`
      if (read.some(one => one.type === provider.type && one.name === name)) {
        report(path, `stands in the file twice, as ${provider.type} and under an alias`)
      }
      const plugin = plugins.origins.get(provider.type)
      try {
        const one = readDestination(provider, name, raw, resolvePath, (inner, message) =>
          report(inner ? `${path}.${inner}` : path, message),
        )
        if (one) read.push({ ...one, plugin })
      } catch (error) {
        // What others write may throw.
        if (plugin === undefined) throw error
        report(path, `can't be checked, since the plugin "${plugin}" fails: ${describeThrown(error)}`)
      }
    }
  }
  return read
}

function readDestination(
  provider: Provider,
  name: string,
  raw: unknown,
  resolvePath: (path: string) => string,
  report: Report,
): DestinationConfig | undefined {
  const schema = optionsOf(provider)
  const parsed = schema.safeParse(raw, { reportInput: true })
  if (!parsed.success) {
    reportIssues(parsed.error, schema, report)
    return undefined
  }
  const all = mapPaths(schema, parsed.data, resolvePath) as Record<string, unknown>
  const common = Object.keys(destinationSchema.shape)
  const options = Object.fromEntries(Object.entries(all).filter(([key]) => !common.includes(key)))
  const problem: unknown = provider.validate?.(options)
  if (typeof problem === 'string') report('', problem)
  else if (problem !== undefined) throw new Error('its "validate" must return a sentence, or undefined')
  return {
    type: provider.type,
    name,
    provider,
    options,
    common: Object.fromEntries(
      Object.entries(all).filter(([key]) => common.includes(key)),
    ) as DestinationConfig['common'],
    secrets: secretsIn(schema, all),
    files: collectMarked(schema, all, 'file'),
  }
}

/** What of a configuration must never be seen again. */
export function secretsIn(schema: z.ZodType, value: unknown): string[] {
  return [
    ...collectMarked(schema, value, 'secret'),
    ...collectMarked(schema, value, 'proxy').flatMap(secretsOfProxy),
  ]
}

/**
 * `default` and the destinations of the keys must name what there is, and keys have names of their own. Looks at the configuration as it was read, so
 * that these mistakes are found beside others.
 */
export function checkReferences(config: unknown, all: readonly Named[], report: Report): void {
  const { default: wanted, server, auth, page, providers } = isRecord(config) ? config : {}
  const known = listIds(all)
  if (all.length > 0) checkDefault(wanted, all, report)
  else if (isRecord(providers) && Object.values(providers).every(isRecord))
    report('providers', 'holds no configuration: it needs providers.TYPE.NAME')

  const keys = isRecord(auth) && Array.isArray(auth['keys']) ? auth['keys'] : []
  const earlier = new Set<unknown>()
  for (const [index, key] of keys.entries()) {
    if (!isRecord(key)) continue
    const { name, destinations } = key
    for (const id of Array.isArray(destinations) ? destinations : []) {
      if (typeof id !== 'string' || isThere(id, all)) continue
      report(`auth.keys[${index}].destinations`, `"${id}" is no destination here. Known are ${known}`)
    }
    if (earlier.has(name)) report(`auth.keys[${index}].name`, `"${name}" is the name of an earlier key`)
    if (name === 'server' && isRecord(server) && server['key'] !== undefined)
      report(`auth.keys[${index}].name`, '"server" is the name of server.key; give this key another one')
    if (isRecord(page) && page['history'] === true && KEYLESS.includes(String(name)))
      report(
        `auth.keys[${index}].name`,
        `"${name}" stands for callers without a key, whose uploads "page.history" would show; give this key another one`,
      )
    if (typeof name === 'string') earlier.add(name)
  }
}

/** A secret must tell who sends it. */
export function checkKeys(config: unknown, report: Report): void {
  const { server, auth } = isRecord(config) ? config : {}
  const keys = isRecord(auth) && Array.isArray(auth['keys']) ? auth['keys'] : []
  const owners = new Map<unknown, string>()
  if (isRecord(server) && server['key'] !== undefined) owners.set(server['key'], 'server.key')
  for (const [index, key] of keys.entries()) {
    if (!isRecord(key) || typeof key['key'] !== 'string') continue
    const path = `auth.keys[${index}].key`
    const owner = owners.get(key['key'])
    if (owner !== undefined) report(path, `is the same secret as ${owner}: nobody could tell who sends it`)
    else owners.set(key['key'], path)
  }
}

/** Fallbacks and mirrors must name other destinations. */
export function checkCopies(destinations: readonly DestinationConfig[], report: Report): void {
  const known = listIds(destinations)
  for (const one of destinations) {
    const { fallback, mirrors = [] } = one.common
    const named: [string, string][] = mirrors.map((mirror, index) => [
      `mirrors[${index}]`,
      mirror.destination,
    ])
    if (fallback !== undefined) named.push(['fallback', fallback])
    for (const [option, id] of named) {
      const path = `providers.${one.type}.${one.name}.${option}`
      const other = splitId(id)
      if (other.type === one.type && other.name === one.name) report(path, 'is the destination itself')
      else if (!isThere(id, destinations)) report(path, `"${id}" is no destination here. Known are ${known}`)
    }
  }
}

function checkDefault(wanted: unknown, all: readonly Named[], report: Report): void {
  if (wanted === undefined && all.length > 1)
    report('default', `is needed, since there are several destinations: ${listIds(all)}`)
  if (typeof wanted !== 'string') return
  try {
    chooseDestination(all, wanted)
  } catch (error) {
    if (!(error instanceof UploadError)) throw error
    report('default', `"${wanted}" can't be used. ${error.message}`)
  }
}

const listIds = (all: readonly Named[]) => all.map(one => `"${idOf(one)}"`).join(', ')

function isThere(id: string, all: readonly Named[]): boolean {
  const { type, name } = splitId(id)
  return all.some(one => one.type === type && (name === undefined || one.name === name))
}

/** Provider ids a configuration speaks of, whatever else is wrong with it. */
export function mentionedTypes(config: unknown): string[] {
  return entriesOf(isRecord(config) ? config['providers'] : undefined).map(([id]) => canonicalType(id))
}
