import { dirname, join } from 'node:path'
import type { LoadedConfig } from '../config/load.ts'
import { databasePathOf } from '../config/paths.ts'
import { createOwnCheck } from '../files/own-paths.ts'
import { createCautiousClock } from '../flow/clock.ts'
import { createNamedSlots, type NamedSlots } from '../flow/slots.ts'
import { createOutgoing } from '../http/proxy/outgoing.ts'
import type { Logger } from '../log.ts'
import type { Mask } from '../mask.ts'
import { createPayloads } from '../payload/index.ts'
import { createSpool, sweepSpool } from '../payload/spool.ts'
import type { Store } from '../store/contract.ts'
import { createPostgresStore } from '../store/postgres.ts'
import type { StoreUse } from '../store/sql.ts'
import { createSqliteStore } from '../store/sqlite.ts'
import { type Destination, destinationIdsOf, locationsOf } from '../uploader/delivery/destinations.ts'
import { createMemoryLocker } from '../uploader/delivery/locker.ts'
import { createUploader, type Uploader, type UploaderDeps } from '../uploader/index.ts'
import { createFinalizer, type FinalizerSettings } from '../uploader/jobs/finalizer.ts'
import { createIdempotency } from '../uploader/jobs/idempotency.ts'
import { createQuotas } from '../uploader/quota.ts'
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
  readonly use?: StoreUse | undefined
}

/** What a process has once, whichever configuration holds: a reload changes its limits and hooks, nothing else. */
export interface Runtime
  extends Pick<
    UploaderDeps,
    'store' | 'locker' | 'finalizer' | 'idempotency' | 'quotas' | 'payloads' | 'slots' | 'fetches' | 'spool'
  > {
  /** See `UploaderDeps`; the sweeper adds to them. */
  readonly withExpiry: Set<string>
  /** The time by which files expire, milliseconds since the epoch. To be asked once in a round: see `createCautiousClock`. */
  dueNow(): number
  /** @param graceMs for how long what runs may go on; default: not at all */
  close(graceMs?: number): Promise<void>
}

/** Opens the destinations of a configuration and makes the uploader over them. */
export async function openUploader(
  config: LoadedConfig,
  deps: UploaderLog & { warn(message: string): void },
): Promise<Uploader> {
  const destinations = await openConfiguredDestinations(config, deps)
  const runtime = createRuntime(config, deps)
  const uploader = makeUploader(config, deps, destinations, runtime)
  return {
    ...uploader,
    async close(graceMs) {
      await runtime.close(graceMs)
      await uploader.close()
    },
  }
}

/** The store is opened when it is first used, the folder for temporary files made then. @throws as `openStore` */
export function createRuntime(config: LoadedConfig, deps: UploaderLog): Runtime {
  const { limits } = config.settings
  const temporary = temporaryOf(config)
  const warn = noteTo(deps.logger)
  const store = openStore(config, deps.use)
  void sweepSpool(temporary).catch(error =>
    deps.logger.warn({ err: error }, 'Old temporary files could not be removed'),
  )
  const spool = createSpool(temporary)
  const finalizer = createFinalizer({
    store,
    ...finalizerSettings(config, deps.env),
    env: deps.env,
    mask: deps.mask,
    now: () => new Date(),
    warn,
  })
  const idempotency = createIdempotency(store, finalizer.owner)
  const quotas = createQuotas(store, finalizer.owner)
  return {
    store,
    locker: createMemoryLocker(),
    finalizer,
    idempotency,
    quotas,
    payloads: createPayloads(limits.memory),
    slots: createNamedSlots(limits.concurrentUploads, limits.waitingUploads),
    fetches: createNamedSlots(limits.concurrentUploads, limits.waitingUploads),
    spool,
    withExpiry: new Set(),
    dueNow: createCautiousClock(),
    async close(graceMs) {
      await idempotency.close()
      await quotas.close()
      await finalizer.close(graceMs)
      await spool.close()
    },
  }
}

/** Makes the uploader of a configuration. */
export function makeUploader(
  config: LoadedConfig,
  deps: UploaderLog,
  destinations: readonly Destination[],
  runtime: Runtime,
): Uploader {
  const { settings } = config
  for (const one of destinations)
    if (one.expiry) for (const id of destinationIdsOf(one)) runtime.withExpiry.add(id)
  const spools = destinations.flatMap(({ target }) => (target.spool ? [dirname(target.spool.directory)] : []))
  return createUploader({
    ...runtime,
    warn: noteTo(deps.logger),
    mask: deps.mask,
    hooks: finalizerSettings(config, deps.env).hooks,
    destinations,
    locations: locationsOf(destinations),
    isStoreShared: settings.store.driver === 'postgres',
    defaultId: settings.default,
    leftOut: config.leftOut,
    sources: {
      fileSize: settings.limits.fileSize,
      urlTimeoutMs: settings.sources.url.timeoutMs,
      outgoing: createOutgoing(
        { ...settings.network, noProxy: [], proxy: settings.sources.url.proxy },
        deps.env,
      ),
      isOwn: createOwnCheck([...config.ownPaths, temporaryOf(config), ...spools]),
      env: deps.env,
    },
    limits: { timeoutMs: settings.limits.deliveryTimeoutMs, retries: settings.limits.retries },
    now: () => new Date(),
  })
}

/** What follows an upload by a configuration. */
export function finalizerSettings(
  { settings: { finalization, network }, programFolder: folder }: LoadedConfig,
  env: ServerDeps['env'],
): FinalizerSettings {
  const outgoing = createOutgoing(network, env)
  return { ...finalization, hooks: finalization.hooks.map(hook => ({ ...hook, outgoing, folder })) }
}

/**
 * Nothing is opened before the store is first used.
 *
 * @param queryTimeoutMs see `createPostgresStore`
 * @throws when a package is not installed that it needs
 */
export function openStore(config: LoadedConfig, use?: StoreUse, queryTimeoutMs?: number): Store {
  const { driver, url } = config.settings.store
  return driver === 'postgres'
    ? createPostgresStore(url ?? '', queryTimeoutMs, { use })
    : createSqliteStore(databasePathOf(config), { use })
}

const temporaryOf = ({ dataDirectory }: LoadedConfig) => join(dataDirectory, 'tmp')

const noteTo =
  (logger: Pick<Logger, 'warn'>) =>
  (message: string, details: object = {}) =>
    logger.warn(details, message)
