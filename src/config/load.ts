import { existsSync } from 'node:fs'
import { join, parse } from 'node:path'
import { hideLogin } from '../http/proxy/address.ts'
import { isLoopback } from '../http/proxy/no-proxy.ts'
import { isLoopbackAddress } from '../ip-ranges.ts'
import { isRecord, type Json, membersOf } from '../members.ts'
import { collectMarked, mapPaths, showSize, walk } from '../options.ts'
import type * as z from '../packages/zod.ts'
import { showDuration } from '../times.ts'
import { idOf, type LeftOut } from '../uploader/destinations.ts'
import { isSocketPath } from './endpoint.ts'
import { parseReporting } from './issues.ts'
import { databasePathOf, knownHosts, resolveLocalPath } from './paths.ts'
import { ConfigError, type Problem, reportTo } from './problems.ts'
import { type DestinationConfig, listNamed, optionsOf, readDestinations, secretsIn } from './providers.ts'
import { type LoadOptions, readConfig } from './read.ts'
import { checkReferences } from './references.ts'
import { configSchema, type Settings } from './schema.ts'
import { checkKeyFiles } from './tokens.ts'

export type { Flags } from './override.ts'
export { ConfigError } from './problems.ts'
export type { LoadOptions } from './read.ts'

export interface LoadedConfig {
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
  const report = reportTo(problems)
  const read = await readConfig(options, report)
  const { base, codeBase, dataDirectory, plugins } = read
  const { value, isEmbedded } = withEmbeddedDefault(read.value, dataDirectory)

  const parsed = parseReporting(configSchema, value, report)
  const resolvePath = (path: string) => resolveLocalPath(path, base)
  const destinations = await readDestinations(value['providers'], resolvePath, report, plugins)
  checkReferences(value, plugins, report)
  const settings = parsed && mapPaths(configSchema, parsed, resolvePath)
  if (settings) checkKeyFiles(settings.auth.tokens, report)
  if (!settings || problems.length > 0) throw new ConfigError(read.file, problems, read.placeOf)

  const files = [
    ...read.files,
    ...plugins.files,
    ...collectMarked(configSchema, settings, 'file'),
    ...destinations.flatMap(one => one.files),
  ]
  const own = [databasePathOf({ settings, dataDirectory }), knownHosts(dataDirectory).kept]
  const secrets = [...secretsIn(configSchema, settings), ...destinations.flatMap(one => one.secrets)]
  return {
    settings,
    destinations,
    file: read.file,
    dataDirectory,
    programFolder: existsSync(codeBase) ? codeBase : parse(codeBase).root,
    files,
    ownPaths: [...new Set([...files, ...read.places, ...plugins.folders, ...own])],
    secrets: [...new Set([...read.secrets, ...secrets])],
    leftOut: read.leftOut,
    notes: [...read.notes, ...(isEmbedded ? [embeddedNote(dataDirectory)] : []), ...warnOfProxies(settings)],
  }
}

/**
 * Reads where a server listens and the names of its destinations, for commands that do not upload. It runs no code of the
 * configuration, and ignores all errors elsewhere in it.
 *
 * @throws ConfigError if this part is invalid
 */
export async function glance(options: LoadOptions) {
  const problems: Problem[] = []
  const read = await readConfig(options, reportTo(problems), false)
  const { value, base, dataDirectory } = read
  const schema = configSchema.pick({ server: true, database: true })
  const part = { server: value['server'], database: readableDatabase(value) }
  const parsed = parseReporting(schema, part, reportTo(problems))
  const own = problems.filter(({ path }) => path === 'server' || path.startsWith('server.'))
  if (!parsed || own.length > 0) throw new ConfigError(read.file, own, read.placeOf)
  const settings = mapPaths(schema, parsed, path => resolveLocalPath(path, base))
  const { providers } = withEmbeddedDefault(value, dataDirectory).value
  return { settings, dataDirectory, ids: listNamed(providers).map(idOf) }
}

/** Ignores invalid settings of the database: a running server keeps its database if a changed file is invalid. */
function readableDatabase({ database }: Json): unknown {
  return configSchema.shape.database.safeParse(database).success ? database : undefined
}

const embeddedDirectory = (dataDirectory: string) => join(dataDirectory, 'files')

/** The note for the operator of a server without a configured destination. */
export function embeddedNote(dataDirectory: string): string {
  return `No destination is configured. Files are stored in ${embeddedDirectory(dataDirectory)} and served under /files/.`
}

/** Without a destination, files are stored in the data directory. */
function withEmbeddedDefault(value: Json, dataDirectory: string): { value: Json; isEmbedded: boolean } {
  const { providers } = value
  const isNamed = isRecord(providers) ? Object.keys(providers).length > 0 : providers !== undefined
  if (isNamed) return { value, isEmbedded: false }
  const directory = embeddedDirectory(dataDirectory)
  return {
    value: { ...value, providers: { local: { Default: { directory, serve: true } } } },
    isEmbedded: true,
  }
}

/** Warns if the settings imply a reverse proxy, whose clients may be mistaken for local clients. */
function warnOfProxies({ server, auth }: Settings): string[] {
  const { host, port, publicUrl, trustProxy } = server
  if (!auth.loopbackExempt || isSocketPath(host)) return []
  // Requests from the reverse proxy of auth.reverseProxy are never local.
  if (auth.reverseProxy?.from.some(one => isLoopbackAddress(one.split('/')[0]))) return []
  const url = publicUrl === undefined ? undefined : new URL(publicUrl)
  // It may lead to this server itself: to its own port, if that accepts remote clients.
  const isOwnPort = url?.protocol === 'http:' && Number(url.port || 80) === port && !isLoopback(host)
  const isPublic = url !== undefined && !isLoopback(url.hostname) && !isOwnPort
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
  const show = (schema: z.ZodType, value: unknown) =>
    walk(schema, value, (value, is) => {
      if (is === 'secret') return MASKED
      if (is === 'proxy') return hideLogin(String(value))
      if (typeof value !== 'number') return value
      return is === 'time' ? showDuration(value) : showSize(value)
    })
  const providers: Record<string, Json> = {}
  for (const { type, name, provider, options, common } of destinations)
    providers[type] = { ...providers[type], [name]: show(optionsOf(provider), { ...common, ...options }) }
  const defaultId = settings.default ?? (destinations[0] && idOf(destinations[0]))
  const shown = show(configSchema, { ...settings, default: defaultId, providers: {} })
  return walk(undefined, { ...membersOf(shown), providers }, value =>
    typeof value === 'string' && value !== MASKED ? mask(value) : value,
  )
}

const MASKED = '[secret]'
