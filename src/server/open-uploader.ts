import { dirname, join } from 'node:path'
import type { LoadedConfig } from '../config/load.ts'
import { databasePathOf } from '../config/paths.ts'
import { createOwnCheck } from '../files/own-paths.ts'
import { createCanceller } from '../flow/cancellation.ts'
import { createNamedSlots, type NamedSlots } from '../flow/slots.ts'
import { within } from '../flow/time-limit.ts'
import { createOutgoing } from '../http/proxy/outgoing.ts'
import type { Logger } from '../log.ts'
import type { Mask } from '../mask.ts'
import { createPayloads } from '../payload/index.ts'
import { createSpool, sweepSpool } from '../payload/spool.ts'
import type { Upload } from '../store/contract.ts'
import type { Database, DatabaseUse } from '../store/database.ts'
import { createOwner } from '../store/owners.ts'
import { openPostgres } from '../store/postgres.ts'
import { openSqlite } from '../store/sqlite.ts'
import { createBackground, type Runtime, type Uploader } from '../uploader/app.ts'
import type { Destination } from '../uploader/destinations.ts'
import { createFinalizer } from '../uploader/finalize.ts'
import type { Hook } from '../uploader/hooks.ts'
import { withLinks } from '../uploader/links.ts'
import { closeTargets } from '../uploader/open.ts'
import { openConfiguredDestinations } from './open-destinations.ts'

export interface ServerDeps {
  readonly logger: Logger
  readonly mask: Mask
  readonly env: Readonly<Record<string, string | undefined>>
  /** See `DestinationDeps`. */
  readonly putQueues?: NamedSlots
}

/** An uploader needs no more of the log. */
type UploaderLog = Omit<ServerDeps, 'logger'> & {
  readonly logger: Pick<Logger, 'warn'>
  /** Default: `create`. */
  readonly use?: DatabaseUse | undefined
}

/** A runtime that can be closed. */
export interface OpenRuntime extends Runtime {
  /** @param graceMs time that running work gets to finish; default 0 */
  close(graceMs?: number): Promise<void>
}

/** An uploader that can be closed. */
export type OpenUploader = Uploader & Pick<OpenRuntime, 'close'>

/** Time to save the state of interrupted work at shutdown. */
const LAST_WRITES_MS = 2000

/** Opens the destinations of a configuration and makes the uploader over them. */
export async function openUploader(
  config: LoadedConfig,
  deps: UploaderLog & {
    warn(message: string): void
    /** Base of links to this server, for files of a destination. */
    baseOf(destination: Destination): Promise<string>
  },
): Promise<OpenUploader> {
  const destinations = await openConfiguredDestinations(config, deps)
  const runtime = createRuntime(config, deps)
  const bases = new Map<string, string>()
  for (const one of destinations) bases.set(one.id, await deps.baseOf(one))
  const uploader = makeUploader(config, deps, destinations, runtime, id => bases.get(id) ?? '')
  return {
    ...uploader,
    async close(graceMs) {
      await runtime.close(graceMs)
      await closeTargets(destinations.map(({ target }) => target))
    },
  }
}

/** The database is opened when it is first used, the folder for temporary files made then. @throws as `openDatabase` */
export function createRuntime(config: LoadedConfig, deps: UploaderLog): OpenRuntime {
  const { limits } = config.settings
  const { perDestination } = limits
  const temporary = temporaryOf(config)
  const warn = noteTo(deps.logger)
  const database = openDatabase(config, deps.use)
  void sweepSpool(temporary).catch(error =>
    deps.logger.warn({ err: error }, 'Old temporary files could not be removed'),
  )
  const spool = createSpool(temporary)
  const owner = createOwner(database)
  const [ending, background] = [createCanceller(), createBackground()]
  const { mask, env } = deps
  const finalizer = createFinalizer({ database, owner, ending: ending.signal, env, mask, warn })
  const settle = (withinMs: number) =>
    within(
      Promise.all([background.idle(), finalizer.idle()]),
      Math.max(0, withinMs),
      () => new Error('late'),
    ).catch(() => {})
  return {
    ...{ database, owner, finalizer, background, spool, mask, warn, ending: ending.signal },
    payloads: createPayloads(limits.memory),
    slots: createNamedSlots(perDestination.concurrent, perDestination.queued),
    fetches: createNamedSlots(perDestination.concurrent, perDestination.queued),
    async close(graceMs = 0) {
      await settle(graceMs)
      ending.abort(new Error('the server is shutting down'))
      await settle(LAST_WRITES_MS)
      await finalizer.saveKept()
      await owner.end()
      await database.close()
      await spool.close()
    },
  }
}

/** Makes the uploader of a configuration, whose hooks run from now on. @param baseUrl of links that no request asks for, by destination */
export function makeUploader(
  config: LoadedConfig,
  deps: UploaderLog,
  destinations: readonly Destination[],
  runtime: Runtime,
  baseUrl: (destination: string) => string,
): Uploader {
  const { settings } = config
  const hooks = hooksOf(config, deps.env)
  const toLinks = (upload: Upload, base = baseUrl(upload.destination)): Upload => ({
    ...upload,
    files: upload.files.map(file => withLinks(file, base, destinations)),
  })
  runtime.finalizer.adopt(hooks, toLinks)
  const spools = destinations.flatMap(({ target }) => (target.spool ? [dirname(target.spool.directory)] : []))
  return {
    ...runtime,
    hooks,
    destinations,
    defaultId: settings.default,
    leftOut: config.leftOut,
    sources: {
      fileSize: settings.limits.fileSize,
      urlTimeoutMs: settings.sources.url.timeout,
      outgoing: createOutgoing(
        { ...settings.network, noProxy: [], proxy: settings.sources.url.proxy },
        deps.env,
      ),
      isOwn: createOwnCheck([...config.ownPaths, temporaryOf(config), ...spools]),
      env: deps.env,
    },
    limits: { timeoutMs: settings.limits.destinationTimeout, retries: settings.limits.retries },
  }
}

/** The hooks of a configuration. */
function hooksOf(
  { settings: { finalization, network }, programFolder: folder }: LoadedConfig,
  env: ServerDeps['env'],
): readonly Hook[] {
  const outgoing = createOutgoing(network, env)
  return finalization.hooks.map(({ timeout, ...hook }) => ({ ...hook, timeoutMs: timeout, outgoing, folder }))
}

/**
 * Nothing is opened before the database is first used.
 *
 * @param queryTimeoutMs see `openPostgres`
 * @throws when a package is not installed that it needs
 */
export function openDatabase(
  config: Pick<LoadedConfig, 'dataDirectory'> & { settings: Pick<LoadedConfig['settings'], 'database'> },
  use?: DatabaseUse,
  queryTimeoutMs?: number,
): Database {
  const { driver, url } = config.settings.database
  return driver === 'postgres'
    ? openPostgres(url ?? '', queryTimeoutMs, { use })
    : openSqlite(databasePathOf(config), { use })
}

const temporaryOf = ({ dataDirectory }: LoadedConfig) => join(dataDirectory, 'tmp')

const noteTo =
  (logger: Pick<Logger, 'warn'>) =>
  (message: string, details: object = {}) =>
    logger.warn(details, message)
