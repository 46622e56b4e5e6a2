import { dirname, join } from 'node:path'
import type { LoadedConfig } from './config/load.ts'
import type { Logger } from './log.ts'
import type { Mask } from './mask.ts'
import { openConfiguredDestinations } from './open-destinations.ts'
import type { Destination } from './uploader/destinations.ts'
import { createFinalizer } from './uploader/finalize.ts'
import { createUploader, type Uploader } from './uploader/index.ts'
import { createPayloads } from './uploader/payload.ts'
import { createRepeater } from './uploader/repeat.ts'
import type { Shared } from './uploader/shared.ts'
import { createSpool, sweepSpool } from './uploader/spool.ts'
import { createPostgresStore } from './uploader/store/postgres.ts'
import { createSqliteStore } from './uploader/store/sqlite.ts'
import type { Store } from './uploader/store.ts'

export interface ServerDeps {
  readonly logger: Logger
  readonly mask: Mask
  readonly env: Readonly<Record<string, string | undefined>>
  /** Default: shared with nobody. */
  readonly shared?: Shared
  /** Gives the figures of all processes of the server. Default: this is the only one. */
  readMetrics?(): Promise<string>
}

/** Opens the destinations of a configuration and makes the uploader over them. */
export async function openUploader(
  config: LoadedConfig,
  deps: ServerDeps & { warn(message: string): void },
): Promise<Uploader> {
  return makeUploader(config, deps, await openConfiguredDestinations(config, deps))
}

/**
 * Makes the uploader of a configuration. The store is opened when it is first used.
 *
 * @param before what goes on of the uploader that this one follows in the same process
 */
export function makeUploader(
  config: LoadedConfig,
  deps: ServerDeps,
  destinations: readonly Destination[],
  before?: Pick<Uploader, 'payloads' | 'slots'>,
): Uploader {
  const { settings, dataDirectory } = config
  const temporary = join(dataDirectory, 'tmp')
  const spool = createSpool(temporary)
  void sweepSpool(temporary).catch(error =>
    deps.logger.warn({ err: error }, 'Old temporary files could not be removed'),
  )
  const now = () => new Date()
  const noteDetails = (message: string, details: object = {}) => deps.logger.warn(details, message)
  const payloads = before?.payloads ?? createPayloads(settings.limits.memory)
  const spools = destinations.flatMap(({ target }) => (target.spool ? [dirname(target.spool.directory)] : []))
  const store = openStore(config, noteDetails)
  const finalizer = createFinalizer({
    store,
    hooks: settings.finalization.hooks,
    keepDays: settings.finalization.keepDays,
    env: deps.env,
    mask: deps.mask,
    now,
    warn: noteDetails,
  })
  return createUploader({
    warn: noteDetails,
    mask: deps.mask,
    store,
    finalizer,
    repeater: createRepeater(store, finalizer.owner),
    destinations,
    defaultId: settings.default,
    leftOut: config.leftOut,
    payloads,
    spool,
    sources: {
      fileSize: settings.limits.fileSize,
      urlTimeoutMs: settings.sources.url.timeoutMs,
      ownPaths: [...config.ownPaths, temporary, ...spools],
      env: deps.env,
    },
    limits: settings.limits,
    slots: before?.slots,
    now,
  })
}

/** Nothing is opened before the store is first used. */
export function openStore(
  { settings, dataDirectory }: LoadedConfig,
  warn: (message: string) => void = () => {},
): Store {
  const { driver, path, url } = settings.store
  if (driver === 'postgres') return createPostgresStore(url ?? '')
  return createSqliteStore(path ?? join(dataDirectory, 'store.db'), { warn })
}
