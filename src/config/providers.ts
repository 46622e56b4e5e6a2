import { describeThrown, UploadError } from '../errors.ts'
import { secretsOfProxy } from '../http/proxy/address.ts'
import { collectMarked, mapPaths } from '../options.ts'
import * as z from '../packages/zod.ts'
import type { Provider } from '../providers/contract.ts'
import { canonicalType, loadProvider, PROVIDER_TYPES } from '../providers/registry.ts'
import { chooseDestination, type DestinationName, idOf, splitId } from '../uploader/destinations.ts'
import { KEYLESS } from '../uploader/input.ts'
import { destinationSchema } from './destination.ts'
import { isSocketPath } from './endpoint.ts'
import type { OnProblem } from './interpolate.ts'
import { reportIssues } from './issues.ts'
import { isRecord } from './json.ts'
import { NO_PLUGINS, type Plugins } from './plugins.ts'
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
      .describe(
        'Destinations, as providers.<type>.<configName>. Default: one that stores files in the data directory.',
      ),
  })
}

function optionsOf(provider: Provider): z.ZodObject {
  return z.strictObject({ ...destinationSchema.shape, ...provider.config.shape })
}

/** The destinations that `providers` contains, valid or not. */
export function listNamed(providers: unknown): DestinationName[] {
  return entriesOf(providers).flatMap(([id, configurations]) =>
    entriesOf(configurations).map(([name]) => ({ type: canonicalType(id), name })),
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
  for (const [id, configurations] of entriesOf(providers)) {
    const provider = plugins.providers.get(id) ?? (await loadProvider(id))
    if (!provider) {
      const known = [...PROVIDER_TYPES, ...plugins.providers.keys()]
      if (plugins.isComplete) report(`providers.${id}`, `is not a provider${suggest(id, known)}`)
      continue
    }
    for (const [name, raw] of entriesOf(configurations)) {
      const path = `providers.${id}.${name}`
      if (read.some(one => one.type === provider.type && one.name === name)) {
        report(
          path,
          `is configured twice, under "${provider.type}" and under an alias of it. Remove one of them`,
        )
      }
      const plugin = plugins.origins.get(provider.type)
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

function readDestination(
  provider: Provider,
  name: string,
  raw: unknown,
  resolvePath: (path: string) => string,
  report: OnProblem,
): DestinationConfig | undefined {
  const schema = optionsOf(provider)
  const parsed = parseOptions(provider, schema, raw)
  if (!parsed.success) {
    reportIssues(parsed.error, schema, report)
    return undefined
  }
  const all: Record<string, unknown> = mapPaths(schema, parsed.data, resolvePath)
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
    // The cast is safe: `destinationSchema` has validated exactly the options with these names.
    common: Object.fromEntries(
      Object.entries(all).filter(([key]) => common.includes(key)),
    ) as DestinationConfig['common'],
    secrets: secretsIn(schema, all),
    files: collectMarked(schema, all, 'file'),
  }
}

/** Adds the options for a private bucket if links redirect, so that users need not set both. */
function parseOptions(provider: Provider, schema: z.ZodObject, raw: unknown) {
  const parse = (input: unknown) => schema.safeParse(input, { reportInput: true })
  if (!isRecord(raw) || raw['link'] !== 'redirect' || !provider.redirected) return parse(raw)
  const isFine = ({ data }: ReturnType<typeof parse>) => data && provider.validate?.(data) === undefined
  const [filled, asGiven] = [parse({ ...provider.redirected, ...raw }), parse(raw)]
  return isFine(filled) || !isFine(asGiven) ? filled : asGiven
}

/** All secrets of a configuration, which must never be shown. */
export function secretsIn(schema: z.ZodType, value: unknown): string[] {
  return [
    ...collectMarked(schema, value, 'secret'),
    ...collectMarked(schema, value, 'proxy').flatMap(secretsOfProxy),
  ]
}

/**
 * Checks that `default` and the destinations of upload keys exist, and that the names of upload keys are unique. It checks
 * the configuration as it was read, so that these errors are reported together with all others.
 *
 * @param plugins whose providers count as known
 */
export function checkReferences(config: unknown, plugins: Plugins, report: OnProblem): void {
  const { default: wanted, server, auth, page, providers } = isRecord(config) ? config : {}
  const all = listNamed(providers)
  // An unknown provider has been reported already, so what refers to its destinations is not reported again.
  const isKnown = ({ type }: DestinationName) =>
    !plugins.isComplete || plugins.providers.has(type) || PROVIDER_TYPES.includes(type)
  const known = all.filter(isKnown)
  if (known.length > 0) checkDefault(wanted, known, all, report)
  else if (all.length === 0 && isRecord(providers) && Object.values(providers).every(isRecord))
    report('providers', 'has no destination. Add one as providers.TYPE.NAME')

  const keys = isRecord(auth) && Array.isArray(auth['keys']) ? auth['keys'] : []
  const earlier = new Set<unknown>()
  for (const [index, key] of keys.entries()) {
    if (!isRecord(key)) continue
    const { name, destinations } = key
    for (const id of Array.isArray(destinations) ? destinations : []) {
      if (typeof id !== 'string' || isThere(id, all)) continue
      report(`auth.keys[${index}].destinations`, notADestination(id, known))
    }
    if (earlier.has(name))
      report(
        `auth.keys[${index}].name`,
        `"${name}" is already the name of another upload key. Choose a different name`,
      )
    if (typeof name === 'string' && /^(?:proxy:|token )/.test(name))
      report(
        `auth.keys[${index}].name`,
        `begins with "${name.startsWith('proxy:') ? 'proxy:' : 'token '}", as the names of people do whom a reverse proxy or a token names. Choose a different name`,
      )
    if (name === 'server' && isRecord(server) && server['key'] !== undefined)
      report(`auth.keys[${index}].name`, '"server" is the name of server.key. Choose a different name')
    if (isRecord(page) && page['history'] === true && KEYLESS.includes(String(name)))
      report(
        `auth.keys[${index}].name`,
        `"${name}" is reserved for clients without an upload key, whose uploads "page.history" would show. Choose a different name`,
      )
    if (typeof name === 'string') earlier.add(name)
  }
  const tokens = isRecord(auth) && Array.isArray(auth['tokens']) ? auth['tokens'] : []
  for (const [index, token] of tokens.entries())
    for (const id of isRecord(token) && Array.isArray(token['destinations']) ? token['destinations'] : [])
      if (typeof id === 'string' && !isThere(id, all))
        report(`auth.tokens[${index}].destinations`, notADestination(id, known))
  const proxy = isRecord(auth) ? auth['reverseProxy'] : undefined
  const host = isRecord(server) ? server['host'] : undefined
  if (isRecord(proxy)) checkProxyAuth(proxy, host, all, known, report)
}

/** Checks that the destinations of `auth.reverseProxy` exist, and that it names the Unix socket only if the server has one. */
function checkProxyAuth(
  proxy: Record<string, unknown>,
  host: unknown,
  all: readonly DestinationName[],
  known: readonly DestinationName[],
  report: OnProblem,
): void {
  const { from, destinations } = proxy
  for (const id of Array.isArray(destinations) ? destinations : [])
    if (typeof id === 'string' && !isThere(id, all))
      report('auth.reverseProxy.destinations', notADestination(id, known))
  if (Array.isArray(from) && from.includes('unix') && !(typeof host === 'string' && isSocketPath(host)))
    report('auth.reverseProxy.from', 'has "unix", but server.host is not a Unix socket')
}

/** Checks that the secrets of upload keys are unique, so that each identifies its client. */
export function checkKeys(config: unknown, report: OnProblem): void {
  const { server, auth } = isRecord(config) ? config : {}
  const keys = isRecord(auth) && Array.isArray(auth['keys']) ? auth['keys'] : []
  const owners = new Map<unknown, string>()
  if (isRecord(server) && server['key'] !== undefined) owners.set(server['key'], 'server.key')
  for (const [index, key] of keys.entries()) {
    if (!isRecord(key) || typeof key['key'] !== 'string') continue
    const path = `auth.keys[${index}].key`
    const owner = owners.get(key['key'])
    if (owner !== undefined)
      report(
        path,
        `is the same secret as ${owner}. Upload keys must differ, so that each identifies its client`,
      )
    else owners.set(key['key'], path)
  }
}

/** Checks that fallbacks and mirrors are other destinations that exist. */
export function checkCopies(destinations: readonly DestinationConfig[], report: OnProblem): void {
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
      if (other.type === one.type && other.name === one.name)
        report(path, 'must be another destination, not this one')
      else if (!isThere(id, destinations)) report(path, notADestination(id, destinations))
    }
  }
}

/** @param known the destinations of `all` whose provider exists */
function checkDefault(
  wanted: unknown,
  known: readonly DestinationName[],
  all: readonly DestinationName[],
  report: OnProblem,
): void {
  if (wanted === undefined && known.length > 1)
    report('default', `is required, because there are several destinations. Available: ${listIds(known)}`)
  if (typeof wanted !== 'string' || (isThere(wanted, all) && !isThere(wanted, known))) return
  try {
    chooseDestination(known, wanted)
  } catch (error) {
    if (!(error instanceof UploadError)) throw error
    report('default', `"${wanted}" can't be used. ${error.message}`)
  }
}

const notADestination = (id: string, known: readonly DestinationName[]) =>
  `"${id}" is not a destination. Available: ${listIds(known)}`

const listIds = (all: readonly DestinationName[]) => all.map(one => `"${idOf(one)}"`).join(', ')

function isThere(id: string, all: readonly DestinationName[]): boolean {
  const { type, name } = splitId(id)
  return all.some(one => one.type === type && (name === undefined || one.name === name))
}

/** The providers that a configuration mentions, valid or not. */
export function mentionedTypes(config: unknown): string[] {
  return entriesOf(isRecord(config) ? config['providers'] : undefined).map(([id]) => canonicalType(id))
}
