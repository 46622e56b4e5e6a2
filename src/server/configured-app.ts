import type { RequestListener } from 'node:http'
import { isSocketPath } from '../config/endpoint.ts'
import type { LoadedConfig } from '../config/load.ts'
import { userHeaderOf } from '../config/proxy-users.ts'
import type { Settings } from '../config/schema.ts'
import { once } from '../flow/once.ts'
import type { AccessSettings } from '../routes/access.ts'
import { createApp, type Limiters } from '../routes/app.ts'
import type { Metrics } from '../routes/metrics.ts'
import { loadPg } from '../store/postgres.ts'
import { createBackground } from '../uploader/app.ts'
import type { Destination } from '../uploader/destinations.ts'
import type { Housekeeping } from '../uploader/housekeeping.ts'
import { closeTargets } from '../uploader/open.ts'
import { createSweeper } from '../uploader/sweep.ts'
import { openConfiguredDestinations } from './open-destinations.ts'
import { openTokens } from './open-tokens.ts'
import { makeUploader, type OpenRuntime, type ServerDeps } from './open-uploader.ts'
import { placeIn } from './running-server.ts'

export interface ConfiguredAppDeps extends ServerDeps {
  readonly runtime: OpenRuntime
  readonly housekeeping: Housekeeping
  readonly limiters: Limiters
  /** The metrics of the process. Called only if they are enabled. */
  metrics(): Promise<Metrics>
  /** The time by which files expire, milliseconds since the epoch. To be asked once in a round: see `createCautiousClock`. */
  dueNow(): number
  /** Logs a warning of a destination. */
  warn(message: string): void
  /** Whether the graceful shutdown has begun. */
  isStopping(): boolean
  /** See `AppDeps`. */
  isRefusing(): boolean
  /** URL at which the server listens, which is known before the first request. */
  listenUrl(): string
  noteProxy(): void
}

/** Handles requests with one configuration. */
export interface ConfiguredApp {
  readonly config: LoadedConfig
  /** Its destinations, as `placeIn` names them. */
  readonly places: readonly string[]
  /** Undefined if metrics are disabled. */
  readonly metrics: Metrics | undefined
  readonly answer: RequestListener
  /** Applies its limits and hooks. */
  start(): void
  /** Stops deleting expired files. Must be called before the database is closed. */
  stopSweeping(): Promise<void>
  /** Waits for its requests in progress, then closes its destinations. */
  retire(): Promise<void>
  /** Closes its destinations. */
  close(): Promise<void>
}

/**
 * Opens the destinations of a configuration and creates the app that uses them.
 *
 * @throws if a destination can't be opened; the others are then closed
 */
export async function openConfiguredApp(
  config: LoadedConfig,
  deps: ConfiguredAppDeps,
): Promise<ConfiguredApp> {
  const destinations = await openConfiguredDestinations(config, deps)
  try {
    return await createConfiguredApp(config, deps, destinations)
  } catch (error) {
    await closeTargets(destinations.map(({ target }) => target))
    throw error
  }
}

async function createConfiguredApp(
  config: LoadedConfig,
  deps: ConfiguredAppDeps,
  destinations: readonly Destination[],
): Promise<ConfiguredApp> {
  const { settings } = config
  const { runtime, logger, mask, isStopping, isRefusing, listenUrl, noteProxy } = deps
  const metrics = settings.metrics.enabled ? await deps.metrics() : undefined
  if (settings.database.driver === 'postgres') await loadPg().catch(() => {}) // Errors are ignored here: the first query reports them.
  const tokens = await openTokens(config, deps)
  const uploader = makeUploader(config, deps, destinations, runtime, () => {
    const base = settings.server.publicUrl ?? listenUrl()
    return base.endsWith('/') ? base : `${base}/`
  })
  metrics?.watch(uploader)
  const requests = createBackground()
  const sweeper = createSweeper({
    ...runtime,
    destinations,
    everyMs: settings.cleanup.interval,
    timeoutMs: settings.limits.destinationTimeout,
    listener: metrics?.sweeping,
    now: deps.dueNow,
    info: (message, details) => logger.info(details, message),
    error: (message, details) => logger.error(details, message),
  })
  const app = createApp(
    {
      uploader,
      logger,
      mask,
      metrics,
      isStopping,
      isRefusing,
      track: requests.run,
      limiters: deps.limiters,
    },
    {
      ...settings.server,
      ...settings,
      limits: { ...settings.limits, bodyIdleMs: settings.limits.bodyIdle },
      alwaysOk: settings.compat.alwaysOk,
      access: { ...accessSettings(settings), tokens, noteProxy },
      isOnSocket: isSocketPath(settings.server.host),
      listenUrl,
    },
  )
  const close = once(() => closeTargets(destinations.map(({ target }) => target)))
  return {
    config,
    places: uploader.destinations.map(placeIn),
    metrics,
    answer: app.answer,
    start() {
      const { memory, perDestination } = settings.limits
      runtime.payloads.resize(memory)
      runtime.slots.resize(perDestination.concurrent, perDestination.queued)
      runtime.fetches.resize(perDestination.concurrent, perDestination.queued)
      deps.housekeeping.adopt(destinations, settings.finalization.keep)
      sweeper.start()
      metrics?.reloaded(true)
    },
    stopSweeping: sweeper.stop,
    async retire() {
      const stopped = sweeper.stop()
      await requests.idle()
      await stopped
      await close()
    },
    close,
  }
}

function accessSettings({ server, auth, sources }: Settings): AccessSettings {
  const { keys, reverseProxy: proxy, tokens: _, ...rules } = auth
  return {
    ...rules,
    keys: server.key === undefined ? keys : [{ name: 'server', key: server.key }, ...keys],
    reverseProxy: proxy && {
      ...proxy,
      userHeader: userHeaderOf(proxy),
      isPreset: proxy.preset !== undefined,
    },
    allowedHosts: server.allowedHosts,
    publicUrl: server.publicUrl,
    sources,
  }
}
