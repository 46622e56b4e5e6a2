import type { LoadedConfig } from './config/load.ts'
import type { Settings } from './config/schema.ts'
import { createHttpServer } from './http-server.ts'
import { openUploader, type ServerDeps } from './open-uploader.ts'
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
 * Starts the server of a configuration.
 *
 * @throws PortTakenError when no port can be had
 */
export async function startServer(config: LoadedConfig, deps: ServerDeps): Promise<RunningServer> {
  const { settings } = config
  const { logger } = deps
  const uploader = await openUploader(config, deps)
  let url = urlOf(settings.server)
  let stopping = false
  const loadApp = once(async () => {
    const { createApp } = await import('./app.ts')
    const listenUrl = () => (url.startsWith('unix:') ? 'http://localhost' : url)
    return createApp(
      { uploader, logger, mask: deps.mask, isStopping: () => stopping, now: () => performance.now() },
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
      if (!logsAll && !stopping && answerHeartbeatEarly(req, res, deps.mask)) return
      void loadApp().then(app => app(req, res))
    },
    (id, status, message) => logger.warn({ id, res: { status } }, message),
  )
  const taken = await takePort(server, settings.server, settings.server.strictPort).catch(async error => {
    await uploader.close()
    throw error
  })
  url = taken.url
  if (taken.kind === 'already-running') {
    await uploader.close()
    return { url, isOurs: false, stop: async () => true }
  }
  // Express takes as long to load as all the rest: by now the port is taken and heartbeats are answered.
  setImmediate(() => void loadApp().then(() => uploader.finalizer.start()))

  return {
    url,
    isOurs: true,
    async stop() {
      stopping = true
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
