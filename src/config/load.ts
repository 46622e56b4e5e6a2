import { join } from 'node:path'
import { hideLogin } from '../http/proxy/address.ts'
import { collectMarked, findDeprecated, type Mark, mapMarked, mapPaths } from '../options.ts'
import { idOf, type LeftOut } from '../uploader/delivery/destinations.ts'
import { destinationSchema } from './destination.ts'
import { isLoopbackHost, isSocketPath } from './endpoint.ts'
import type { Report } from './interpolate.ts'
import { reportIssues } from './issues.ts'
import { isRecord, type Json } from './json.ts'
import { knownHosts, resolveLocalPath } from './paths.ts'
import { loadPlugins } from './plugins.ts'
import {
  checkCopies,
  checkKeys,
  checkReferences,
  type DestinationConfig,
  listNamed,
  readDestinations,
  secretsIn,
  wholeSchema,
} from './providers.ts'
import { ConfigError, type LoadOptions, type Problem, type RawConfig, readRaw } from './raw.ts'
import { configSchema, type Settings } from './schema.ts'
import { createLocator } from './sources.ts'

export { ConfigError, type Flags, type LoadOptions, type RawConfig } from './raw.ts'

export interface LoadedConfig {
  /** What it was made of. */
  readonly raw: RawConfig
  readonly settings: Settings
  readonly destinations: readonly DestinationConfig[]
  /** The file that was read; undefined: there is none. */
  readonly file: string | undefined
  /** For what the program keeps: the embedded destination, the store, temporary files. */
  readonly dataDirectory: string
  /** Every file whose content went into it or into its destinations. */
  readonly files: readonly string[]
  /** Files and directories of the server itself that nobody may upload. */
  readonly ownPaths: readonly string[]
  readonly secrets: readonly string[]
  /** Destinations of a PicGo or PicList file that can't be used. */
  readonly leftOut: readonly LeftOut[]
  /** Sentences for the operator. */
  readonly notes: readonly string[]
}

/**
 * Finds, reads and checks the configuration. Precedence: flag, environment, `.env`, file, default.
 *
 * @throws ConfigError that names every mistake at once
 */
export async function loadConfig(options: LoadOptions): Promise<LoadedConfig> {
  const problems: Problem[] = []
  const raw = await readRaw(options, reportTo(problems))
  return checkConfig(raw, problems)
}

const reportTo =
  (problems: Problem[]): Report =>
  (path, message) => {
    if (!problems.some(one => one.path === path && one.message === message)) problems.push({ path, message })
  }

/**
 * Checks a configuration that has been read, here or in another process.
 *
 * @param problems that are known already
 * @throws ConfigError
 */
export async function checkConfig(raw: RawConfig, problems: Problem[] = []): Promise<LoadedConfig> {
  const report = reportTo(problems)
  const resolvePath = (path: string) => resolveLocalPath(path, raw.base)
  const { dataDirectory } = raw
  const notes = [...raw.notes]
  const value = namesProviders(raw.value) ? raw.value : withEmbeddedDefault(raw.value, dataDirectory, notes)

  const parsed = configSchema.safeParse(value, { reportInput: true })
  if (!parsed.success) reportIssues(parsed.error, configSchema, report)
  const plugins = await loadPlugins(value['plugins'], raw.base, report)
  const destinations = await readDestinations(value['providers'], resolvePath, report, plugins)
  checkReferences(value, listNamed(value['providers']), report)
  checkKeys(value, report)
  const { store } = value
  if (isRecord(store) && store['driver'] === 'postgres' && store['url'] === undefined)
    report('store.driver', 'is "postgres", which needs its address as "store.url"')
  if (problems.length === 0) checkCopies(destinations, report)
  if (!parsed.success || problems.length > 0)
    throw new ConfigError(raw.file, problems, await createLocator(raw.sources))
  const settings = mapPaths(configSchema, parsed.data, resolvePath) as Settings

  const whole = await wholeSchema(Object.keys(value['providers'] ?? {}), plugins)
  notes.push(...findDeprecated(whole, value), ...warnOfProxies(settings))

  const files = [
    ...raw.files,
    ...plugins.files,
    ...collectMarked(configSchema, settings, 'file'),
    ...destinations.flatMap(one => one.files),
  ]
  return {
    raw,
    settings,
    destinations,
    file: raw.file,
    dataDirectory,
    files,
    ownPaths: [
      ...files,
      ...plugins.folders,
      settings.store.path ?? join(dataDirectory, 'store.db'),
      knownHosts(dataDirectory).kept,
    ],
    secrets: [
      ...new Set([
        ...raw.secrets,
        ...secretsIn(configSchema, settings),
        ...destinations.flatMap(one => one.secrets),
      ]),
    ],
    leftOut: raw.leftOut,
    notes,
  }
}

function namesProviders({ providers }: Json): boolean {
  return providers !== undefined && !(isRecord(providers) && Object.keys(providers).length === 0)
}

const embeddedDirectory = (dataDirectory: string) => join(dataDirectory, 'files')

/** Said to the operator of a server without any destination. */
export function embeddedNote(dataDirectory: string): string {
  return `No destination is configured: files go to ${embeddedDirectory(dataDirectory)} and are served under /files/.`
}

function withEmbeddedDefault(value: Json, dataDirectory: string, notes: string[]): Json {
  const directory = embeddedDirectory(dataDirectory)
  notes.push(embeddedNote(dataDirectory))
  return { ...value, providers: { local: { Default: { directory, serve: true } } } }
}

/** Whether a server answers there by itself: at home, or with its own port where it listens to others. */
function isOwnAddress({ protocol, hostname, port }: URL, host: string, listenPort: number): boolean {
  if (isLoopbackHost(hostname)) return true
  return protocol === 'http:' && Number(port || 80) === listenPort && !isLoopbackHost(host)
}

/** A sentence for the operator where the settings show that there is a proxy, which may lend out what this machine may. */
function warnOfProxies({ server, auth }: Settings): string[] {
  const { host, port, publicUrl, trustProxy } = server
  if (!auth.loopbackExempt || isSocketPath(host)) return []
  const isPublic = publicUrl !== undefined && !isOwnAddress(new URL(publicUrl), host, port)
  if (!isPublic && trustProxy.length === 0) return []
  const setting = isPublic ? 'server.publicUrl' : 'server.trustProxy'
  return [
    `${setting} shows that there is a proxy. If it runs on this machine and adds no X-Forwarded-For, whoever reaches it ` +
      'counts as a program of this machine and needs no key: set auth.loopbackExempt to false',
  ]
}

/**
 * The whole configuration with its defaults, as plain JSON. Secrets are masked in their places, whatever they are, and
 * by `mask` where they stand inside other values.
 */
export function showConfig(
  { settings, destinations }: LoadedConfig,
  mask: (text: string) => string,
): unknown {
  const hide = (text: string, is: Mark) =>
    is === 'secret' ? '[secret]' : is === 'proxy' ? hideLogin(text) : text
  const providers: Record<string, Json> = {}
  for (const { type, name, provider, options, common } of destinations) {
    const shown = mapMarked(provider.config, options, hide) as Json
    providers[type] = {
      ...providers[type],
      [name]: { ...(mapMarked(destinationSchema, common, hide) as Json), ...shown },
    }
  }
  const defaultId = settings.default ?? (destinations[0] && idOf(destinations[0]))
  const shown = mapMarked(configSchema, { ...settings, default: defaultId }, hide) as Json
  return JSON.parse(JSON.stringify({ ...shown, providers }), (_, value: unknown) =>
    typeof value === 'string' ? mask(value) : value,
  )
}
