import { existsSync } from 'node:fs'
import { join, parse } from 'node:path'
import { hideLogin } from '../http/proxy/address.ts'
import { isLoopbackAddress } from '../loopback-address.ts'
import { collectMarked, type Mark, mapMarked, mapPaths, showSize } from '../options.ts'
import { showDuration } from '../times.ts'
import { idOf, type LeftOut } from '../uploader/destinations.ts'
import { destinationSchema } from './destination.ts'
import { isLoopbackHost, isSocketPath } from './endpoint.ts'
import type { OnProblem } from './interpolate.ts'
import { reportIssues } from './issues.ts'
import { isRecord, type Json } from './json.ts'
import { databasePathOf, knownHosts, resolveLocalPath } from './paths.ts'
import { loadPlugins } from './plugins.ts'
import {
  checkCopies,
  checkKeys,
  checkReferences,
  type DestinationConfig,
  listNamed,
  readDestinations,
  secretsIn,
} from './providers.ts'
import { ConfigError, type LoadOptions, type Problem, type RawConfig, readRaw } from './raw.ts'
import { configSchema, type Settings } from './schema.ts'
import { createLocator } from './sources.ts'
import { checkKeyFiles } from './tokens.ts'

export { ConfigError, type Flags, type LoadOptions, type RawConfig } from './raw.ts'

export interface LoadedConfig {
  /** The configuration as it was read, before defaults and checks. */
  readonly raw: RawConfig
  readonly settings: Settings
  readonly destinations: readonly DestinationConfig[]
  /** The file that was read; undefined if there is none. */
  readonly file: string | undefined
  /** Directory for the embedded destination, the database and temporary files. */
  readonly dataDirectory: string
  /** Working directory of the programs that the configuration starts. */
  readonly programFolder: string
  /** Every file whose content is part of the configuration or of its destinations. */
  readonly files: readonly string[]
  /** Files and directories of the server itself, which must not be uploaded. */
  readonly ownPaths: readonly string[]
  readonly secrets: readonly string[]
  /** Destinations of a PicGo or PicList file that can't be used. */
  readonly leftOut: readonly LeftOut[]
  /** Warnings and remarks for the operator, as sentences. */
  readonly notes: readonly string[]
}

/**
 * Finds, reads and checks the configuration. Precedence: flag, environment, `.env`, file, default.
 *
 * @throws ConfigError that lists all errors
 */
export async function loadConfig(options: LoadOptions): Promise<LoadedConfig> {
  const problems: Problem[] = []
  const raw = await readRaw(options, reportTo(problems))
  return checkConfig(raw, problems)
}

const reportTo =
  (problems: Problem[]): OnProblem =>
  (path, message) => {
    if (!problems.some(one => one.path === path && one.message === message)) problems.push({ path, message })
  }

/**
 * Checks a configuration that has been read.
 *
 * @param problems errors that were found while it was read
 * @throws ConfigError
 */
export async function checkConfig(raw: RawConfig, problems: Problem[] = []): Promise<LoadedConfig> {
  const report = reportTo(problems)
  const resolvePath = (path: string) => resolveLocalPath(path, raw.base)
  const { dataDirectory } = raw
  const notes = [...raw.notes]
  const value = namesProviders(raw.value) ? raw.value : withEmbeddedDefault(raw.value, dataDirectory)
  if (value !== raw.value) notes.push(embeddedNote(dataDirectory))

  const parsed = configSchema.safeParse(value, { reportInput: true })
  if (!parsed.success) reportIssues(parsed.error, configSchema, report)
  const plugins = raw.plugins ?? (await loadPlugins(value['plugins'], raw.codeBase, report))
  const destinations = await readDestinations(value['providers'], resolvePath, report, plugins)
  checkReferences(value, plugins, report)
  checkKeys(value, report)
  const { database } = value
  if (isRecord(database) && database['driver'] === 'postgres' && database['url'] === undefined)
    report('database.driver', 'is "postgres", which requires a connection URL in "database.url"')
  if (problems.length === 0) checkCopies(destinations, report)
  const settings = parsed.success ? mapPaths(configSchema, parsed.data, resolvePath) : undefined
  if (settings) checkKeyFiles(settings.auth.tokens, report)
  if (!settings || problems.length > 0)
    throw new ConfigError(raw.file, problems, await createLocator(raw.sources))

  notes.push(...warnOfProxies(settings))

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
    programFolder: existsSync(raw.codeBase) ? raw.codeBase : parse(raw.codeBase).root,
    files,
    ownPaths: [
      ...new Set([
        ...files,
        ...raw.places,
        ...plugins.folders,
        databasePathOf({ settings, dataDirectory }),
        knownHosts(dataDirectory).kept,
      ]),
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

/** The part of a configuration for commands that do not upload. */
export interface Glance extends Pick<LoadedConfig, 'dataDirectory'> {
  readonly settings: Pick<Settings, 'server' | 'database'>
  readonly ids: string[]
}

/**
 * Reads where a server listens and the names of its destinations. It runs no code of the configuration, and ignores all
 * errors elsewhere in it.
 *
 * @throws ConfigError if this part is invalid
 */
export async function glance(options: LoadOptions): Promise<Glance> {
  const problems: Problem[] = []
  const report = reportTo(problems)
  const raw = await readRaw({ ...options, loadsPlugins: false }, (path, message) => {
    if (path === 'server' || path.startsWith('server.')) report(path, message)
  })
  const schema = configSchema.pick({ server: true, database: true })
  const parsed = schema.safeParse(
    { server: raw.value['server'], database: readableDatabase(raw.value) },
    { reportInput: true },
  )
  if (!parsed.success) reportIssues(parsed.error, configSchema, report)
  if (!parsed.success || problems.length > 0)
    throw new ConfigError(raw.file, problems, await createLocator(raw.sources))
  const settings = mapPaths(schema, parsed.data, path => resolveLocalPath(path, raw.base))
  const value = namesProviders(raw.value) ? raw.value : withEmbeddedDefault(raw.value, raw.dataDirectory)
  return { settings, dataDirectory: raw.dataDirectory, ids: listNamed(value['providers']).map(idOf) }
}

/** Ignores invalid settings of the database: a running server keeps its database if a changed file is invalid. */
function readableDatabase({ database }: Json): unknown {
  return configSchema.shape.database.safeParse(database).success ? database : undefined
}

function namesProviders({ providers }: Json): boolean {
  return providers !== undefined && !(isRecord(providers) && Object.keys(providers).length === 0)
}

const embeddedDirectory = (dataDirectory: string) => join(dataDirectory, 'files')

/** The note for the operator of a server without a configured destination. */
export function embeddedNote(dataDirectory: string): string {
  return `No destination is configured. Files are stored in ${embeddedDirectory(dataDirectory)} and served under /files/.`
}

function withEmbeddedDefault(value: Json, dataDirectory: string): Json {
  const directory = embeddedDirectory(dataDirectory)
  return { ...value, providers: { local: { Default: { directory, serve: true } } } }
}

/** Whether the URL leads directly to this server: to a loopback address, or to its own port if it accepts remote clients. */
function isOwnAddress({ protocol, hostname, port }: URL, host: string, listenPort: number): boolean {
  if (isLoopbackHost(hostname)) return true
  return protocol === 'http:' && Number(port || 80) === listenPort && !isLoopbackHost(host)
}

/** Warns if the settings imply a reverse proxy, whose clients may be mistaken for local clients. */
function warnOfProxies({ server, auth }: Settings): string[] {
  const { host, port, publicUrl, trustProxy } = server
  if (!auth.loopbackExempt || isSocketPath(host)) return []
  // What comes from the reverse proxy of auth.reverseProxy is never local.
  if (auth.reverseProxy?.from.some(one => isLoopbackAddress(one.split('/')[0]))) return []
  const isPublic = publicUrl !== undefined && !isOwnAddress(new URL(publicUrl), host, port)
  if (!isPublic && trustProxy.length === 0) return []
  const setting = isPublic ? 'server.publicUrl' : 'server.trustProxy'
  return [
    `${setting} is set, so a reverse proxy is probably in use. If it runs on this machine without adding X-Forwarded-For, ` +
      'anyone who reaches it can upload without a key. Set auth.loopbackExempt to false in that case',
  ]
}

/**
 * The whole configuration with its defaults, as plain JSON. Options that are secrets are masked, whatever their value;
 * `mask` masks secrets inside other values.
 */
export function showConfig(
  { settings, destinations }: LoadedConfig,
  mask: (text: string) => string,
): unknown {
  const hide = (value: string | number, is: Mark) => {
    if (is === 'secret') return '[secret]'
    if (is === 'proxy') return hideLogin(String(value))
    if (is === 'time') return showDuration(Number(value))
    return is === 'size' ? showSize(Number(value)) : value
  }
  const providers: Record<string, Json> = {}
  for (const { type, name, provider, options, common } of destinations) {
    const shown = mapMarked(provider.config, options, hide)
    providers[type] = {
      ...providers[type],
      [name]: { ...mapMarked(destinationSchema, common, hide), ...shown },
    }
  }
  const defaultId = settings.default ?? (destinations[0] && idOf(destinations[0]))
  const shown = mapMarked(configSchema, { ...settings, default: defaultId }, hide)
  return JSON.parse(JSON.stringify({ ...shown, providers }), (_, value: unknown) =>
    typeof value === 'string' ? mask(value) : value,
  )
}
