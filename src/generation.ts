import type { RequestListener } from 'node:http'
import type { App, Limiters } from './app.ts'
import type { LoadedConfig } from './config/load.ts'
import type { Settings } from './config/schema.ts'
import type { MessageTypes } from './message-types.ts'
import type { Metrics } from './metrics.ts'
import { once } from './once.ts'
import { openConfiguredDestinations } from './open-destinations.ts'
import type { ServerDeps } from './open-uploader.ts'
import { isSocketPath } from './port.ts'
import type { AccessSettings } from './routes/access.ts'
import type { Uploader } from './uploader/index.ts'

export interface GenerationDeps extends ServerDeps {
  /** A line for the operator from a destination. */
  warn(message: string): void
  /** True once the server is going down. */
  isStopping(): boolean
  /** Address the server listens on; known when the first request comes. */
  listenUrl(): string
  /** Called with the application that requests go to from now on. */
  makeFor: MessageTypes['makeFor']
}

/** What requests need and the start does not. */
export interface Loaded {
  readonly uploader: Uploader
  readonly limiters: Limiters
  readonly app: App
}

/** What answers requests by one configuration. A reload opens the next one; this one ends with its last request. */
export interface Generation {
  readonly config: LoadedConfig
  /** Undefined when they are switched off. */
  readonly metrics: Metrics | undefined
  /** What it counted; see `Metrics`. */
  figures(): Promise<object[]>
  load(): Promise<Loaded>
  readonly answer: RequestListener
  /** Has its limits hold, loads what uploads need, then looks after pending jobs from time to time. */
  start(): Promise<void>
  /** Lets what runs end as it began, then closes. */
  retire(): Promise<void>
  /** @param graceMs for how long what runs may go on; default: not at all */
  close(graceMs?: number): Promise<void>
}

/**
 * Opens the destinations of a configuration and what answers requests with them.
 *
 * @param before the generation that this one follows: names in use and limits hold across both
 */
export async function openGeneration(
  config: LoadedConfig,
  deps: GenerationDeps,
  before?: Generation,
): Promise<Generation> {
  const { settings } = config
  const destinations = await openConfiguredDestinations(config, deps)
  const metrics = settings.metrics.enabled
    ? (before?.metrics ?? (await import('./metrics.ts')).createMetrics())
    : undefined
  const carried = before && carriedBy(await before.load())
  let running = 0
  let becomeIdle = () => {}
  let closed: Promise<void> | undefined

  const leave = () => {
    running--
    if (running === 0) becomeIdle()
  }
  function track<T>(work: Promise<T>): Promise<T> {
    running++
    return work.finally(leave)
  }

  const load = once(async (): Promise<Loaded> => {
    const [{ makeUploader }, { createApp, createLimiters }] = await Promise.all([
      import('./open-uploader.ts'),
      import('./app.ts'),
    ])
    const uploader = makeUploader(config, deps, destinations, carried)
    const limiters = carried?.limiters ?? createLimiters()
    const { logger, mask, isStopping, listenUrl } = deps
    const shown = metrics && { ...metrics, read: deps.readMetrics ?? metrics.read }
    const measured = metrics?.measure(uploader) ?? uploader
    const app = createApp(
      { uploader: measured, logger, mask, metrics: shown, isStopping, track, limiters },
      {
        ...settings.server,
        ...settings,
        alwaysOk: settings.compat.alwaysOk,
        access: accessSettings(settings),
        isOnSocket: isSocketPath(settings.server.host),
        listenUrl,
      },
    )
    deps.makeFor(app)
    return { uploader, limiters, app }
  })
  const close = (graceMs?: number) => {
    closed ??= load().then(({ uploader }) => uploader.close(graceMs))
    return closed
  }

  return {
    config,
    metrics,
    load,
    async figures() {
      await load()
      return (await metrics?.figures()) ?? []
    },
    answer(req, res) {
      running++
      res.on('close', leave)
      load().then(
        ({ app }) => app.answer(req, res),
        () => req.destroy(),
      )
    },
    async start() {
      const { memory, concurrentUploads, waitingUploads } = settings.limits
      const { uploader } = await load()
      uploader.payloads.resize(memory)
      uploader.slots.resize(concurrentUploads, waitingUploads)
      if (!deps.isStopping()) uploader.finalizer.start()
    },
    async retire() {
      const { uploader } = await load()
      uploader.finalizer.stop()
      if (running > 0) await new Promise<void>(resolve => (becomeIdle = resolve))
      await close(settings.shutdown.graceMs)
    },
    close,
  }
}

/** No more of it: each generation would keep all before it. */
function carriedBy({ uploader, limiters }: Loaded) {
  const { payloads, slots } = uploader
  return { payloads, slots, limiters }
}

function accessSettings({ server, auth, sources }: Settings): AccessSettings {
  const { keys, ...rules } = auth
  return {
    ...rules,
    keys: server.key === undefined ? keys : [{ name: 'server', key: server.key }, ...keys],
    allowedHosts: server.allowedHosts,
    sources,
  }
}
