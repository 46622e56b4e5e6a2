import type { RequestListener } from 'node:http'
import type { Limiters } from './app.ts'
import type { LoadedConfig } from './config/load.ts'
import type { Settings } from './config/schema.ts'
import type { MessageTypes } from './message-types.ts'
import type { Metrics } from './metrics.ts'
import { once } from './once.ts'
import { openUploader, type ServerDeps } from './open-uploader.ts'
import { isSocketPath } from './port.ts'
import type { AccessSettings } from './routes/access.ts'
import { createFailureWindow } from './routes/failure-window.ts'
import { createListMemory } from './routes/list-memory.ts'
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

/** What answers requests by one configuration. A reload opens the next one; this one ends with its last request. */
export interface Generation {
  readonly config: LoadedConfig
  readonly uploader: Uploader
  /** Undefined when they are switched off. */
  readonly metrics: Metrics | undefined
  readonly limiters: Limiters
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
  const uploader = await openUploader(config, deps, before?.uploader)
  const metrics = settings.metrics.enabled
    ? (before?.metrics ?? (await import('./metrics.ts')).createMetrics())
    : undefined
  const limiters = before?.limiters ?? {
    keys: createFailureWindow(() => performance.now()),
    tokens: createFailureWindow(() => performance.now()),
    lists: createListMemory(),
  }
  const measured = metrics?.measure(uploader) ?? uploader
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

  const loadApp = once(async () => {
    const { createApp } = await import('./app.ts')
    const { logger, mask, isStopping, listenUrl } = deps
    const shown = metrics && { ...metrics, read: deps.readMetrics ?? metrics.read }
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
    return app
  })
  const close = (graceMs?: number) => {
    closed ??= uploader.close(graceMs)
    return closed
  }

  return {
    config,
    uploader,
    metrics,
    limiters,
    answer(req, res) {
      running++
      res.once('close', leave)
      loadApp().then(
        app => app.answer(req, res),
        () => req.destroy(),
      )
    },
    async start() {
      const { memory, concurrentUploads, waitingUploads } = settings.limits
      uploader.payloads.resize(memory)
      uploader.slots.resize(concurrentUploads, waitingUploads)
      await loadApp()
      if (!deps.isStopping()) uploader.finalizer.start()
    },
    async retire() {
      uploader.finalizer.stop()
      if (running > 0) await new Promise<void>(resolve => (becomeIdle = resolve))
      await close(settings.shutdown.graceMs)
    },
    close,
  }
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
