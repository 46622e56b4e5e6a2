import { isLoopbackHost, isSocketPath } from '../config/endpoint.ts'
import { type Flags, type LoadedConfig, loadConfig } from '../config/load.ts'
import { createLog, type Logger } from '../log.ts'
import { type RunningServer, startServer } from '../server/index.ts'
import { PortTakenError } from '../server/port.ts'
import { filesToWatch, keepUpToDate } from './reload.ts'
import type { CommonOptions, Terminal } from './terminal.ts'
import { fingerprint } from './watch-files.ts'

export interface ServeOptions extends CommonOptions {
  port?: number
  host?: string
  key?: string
  strictPort?: boolean
  workers?: number | 'auto'
  allowAnonymous?: boolean
  logLevel?: string
  /** False: --no-watch. */
  watch?: boolean
}

/** What the process is told from outside. */
export interface Signals {
  /** Calls back at SIGTERM or SIGINT, every time. */
  onStop(callback: () => void): void
  /** Calls back at SIGHUP, every time. */
  onReload(callback: () => void): void
  /** Ends the process now. */
  exit(code: number): void
}

/** `upload-server [serve]`: runs until it is told to stop. */
export async function serve(options: ServeOptions, terminal: Terminal, signals: Signals): Promise<number> {
  const load = (file = options.config) => loadConfig({ ...terminal, file, flags: toFlags(options) })
  const config = await load()
  const seen = fingerprint(filesToWatch(config))
  const { mask, learn } = terminal
  learn(config.secrets)
  const logger = await createLog({ level: config.settings.log.level, mask })
  // From before the first heartbeat on: whoever waits for that one may send the signal, which else ends the process.
  let reload = () => {
    reloadIsWanted = true
  }
  let reloadIsWanted = false
  signals.onReload(() => reload())
  let server: RunningServer
  try {
    const start =
      config.settings.server.workers === 1
        ? startServer
        : (await import('../workers/primary.ts')).startWorkers
    server = await start(config, { logger, mask, env: terminal.env })
  } catch (error) {
    if (!(error instanceof PortTakenError)) throw error
    logger.fatal(error.message)
    return 1
  }
  if (!server.isOurs) {
    logger.info(
      { url: server.url },
      `An upload server of this kind is already running at ${server.url}; nothing was started`,
    )
    return 0
  }
  // Whoever waits for the first line of the log may stop the server as soon as it is there.
  const stopped = untilStopped(server, logger, signals)
  // A file that has gone must not become the embedded default.
  const reread = () => load(config.file)
  reload = keepUpToDate({ config, seen, server, logger, learn, load: reread })
  announce(config, server, logger)
  if (reloadIsWanted) reload()
  return stopped
}

function toFlags(options: ServeOptions): Flags {
  const { host, port, key, strictPort, workers, allowAnonymous, logLevel, watch } = options
  return {
    server: { host, port, key, strictPort, workers, ...(watch === false && { watch }) },
    auth: { anonymous: allowAnonymous },
    log: { level: logLevel },
  }
}

/** The first line of the log holds the real address; what an operator should know follows. */
function announce({ settings, file, notes }: LoadedConfig, server: RunningServer, logger: Logger): void {
  logger.info({ url: server.url, config: file ?? 'none, embedded default' }, `Listening on ${server.url}`)
  const { host, port, key } = settings.server
  if (port !== 0 && !server.url.startsWith('unix:') && !server.url.endsWith(`:${port}`)) {
    logger.warn(
      { wanted: port, url: server.url },
      `Port ${port} is taken by something else; listening on ${server.url} instead`,
    )
  }
  if (!isLoopbackHost(host) && key === undefined && settings.auth.keys.length === 0) {
    logger.warn(
      settings.auth.anonymous
        ? 'Anybody who reaches this address may upload (auth.anonymous)'
        : `There is no upload key: ${isSocketPath(host) ? 'all callers' : 'callers from other machines'} are refused. Set server.key, UPLOAD_SERVER_KEY or --key`,
    )
  }
  for (const note of [...notes, ...server.notes]) logger.warn(note)
}

function untilStopped(server: RunningServer, logger: Logger, signals: Signals): Promise<number> {
  return new Promise(resolve => {
    let asked = false
    server.failed?.then(async reason => {
      if (asked) return
      asked = true
      logger.fatal(reason)
      await server.stop()
      resolve(1)
    })
    signals.onStop(() => {
      if (asked) {
        signals.exit(1)
        return
      }
      asked = true
      logger.info('Stopping: running uploads are finished first')
      server.stop().then(
        finished => {
          if (finished) logger.info('Stopped')
          else logger.error('Stopped; uploads that took longer than shutdown.graceMs were cut')
          resolve(finished ? 0 : 1)
        },
        error => {
          logger.error({ err: error }, 'Stopped, but not cleanly')
          resolve(1)
        },
      )
    })
  })
}
