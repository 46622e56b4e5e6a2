import type { LoadedConfig } from './config/load.ts'
import type { Settings } from './config/schema.ts'
import { createHttpServer } from './http-server.ts'
import type { ServerDeps } from './open-uploader.ts'
import { takePort, urlOf } from './port.ts'
import type { AccessSettings } from './routes/access.ts'
import { answerHeartbeatEarly } from './routes/heartbeat.ts'

export interface RunningServer {
  /** Real address, or that of the server of the same kind that was there already. */
  readonly url: string
  /** False when a server of the same kind was there already and nothing was started. */
  readonly isOurs: boolean
  /**
   * Stops listening and lets running requests finish.
   * @returns false when `shutdown.graceMs` ran out and the rest was aborted
   */
  stop(): Promise<boolean>
}

/**
 * How long what the first upload needs stays unloaded, unless a request comes: loading it takes as long as the start, and
 * whoever waits for the first heartbeat should not wait for it.
 */
const LOAD_AFTER_MS = 200

/**
 * Starts the server of a configuration: takes the port, then opens the destinations.
 *
 * @throws PortTakenError when no port can be had
 */
export async function startServer(config: LoadedConfig, deps: ServerDeps): Promise<RunningServer> {
  const { settings } = config
  const { logger, mask } = deps
  let url = urlOf(settings.server)
  let stopping = false
  const openUploader = once(async () => (await import('./open-uploader.ts')).openUploader(config, deps))
  const loadApp = once(async () => {
    const [uploader, { createApp }] = await Promise.all([openUploader(), import('./app.ts')])
    const listenUrl = () => (url.startsWith('unix:') ? 'http://localhost' : url)
    return createApp(
      { uploader, logger, mask, isStopping: () => stopping, now: () => performance.now() },
      {
        ...settings.server,
        ...settings,
        alwaysOk: settings.compat.alwaysOk,
        access: accessSettings(settings),
        listenUrl,
      },
    )
  })
  const logsAll = logger.isLevelEnabled('debug')
  const { server, stop } = createHttpServer(
    (req, res) => {
      if (!logsAll && !stopping && answerHeartbeatEarly(req, res, mask)) return
      loadApp().then(
        app => app(req, res),
        () => req.destroy(),
      )
    },
    (id, status, message) => logger.warn({ id, res: { status } }, message),
  )
  const taken = await takePort(server, settings.server, settings.server.strictPort)
  url = taken.url
  if (taken.kind === 'already-running') return { url, isOurs: false, stop: async () => true }
  const uploader = await openUploader().catch(async error => {
    await stop(0)
    throw error
  })
  const startRest = async () => {
    await loadApp()
    if (!stopping) uploader.finalizer.start()
  }
  const timer = setTimeout(() => void startRest(), LOAD_AFTER_MS)

  return {
    url,
    isOurs: true,
    async stop() {
      stopping = true
      clearTimeout(timer)
      const end = performance.now() + settings.shutdown.graceMs
      const finished = await stop(settings.shutdown.graceMs)
      await uploader.close(end - performance.now())
      return finished
    },
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

/** Calls the function at the first use only. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => {
    made ??= make()
    return made
  }
}
