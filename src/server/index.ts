import { isDeepStrictEqual } from 'node:util'
import type { LoadedConfig } from '../config/load.ts'
import type { Settings } from '../config/schema.ts'
import { createCautiousClock } from '../flow/clock.ts'
import { once } from '../flow/once.ts'
import { membersOf } from '../members.ts'
import { createLimiters } from '../routes/app.ts'
import { OtherSchema } from '../store/database.ts'
import { createHousekeeping } from '../uploader/housekeeping.ts'
import { createPutQueues } from '../uploader/open.ts'
import { type ConfiguredApp, type ConfiguredAppDeps, openConfiguredApp } from './configured-app.ts'
import { createHttpServer } from './http-server.ts'
import { createRuntime, type ServerDeps } from './open-uploader.ts'
import { takePort, urlOf } from './port.ts'

export interface RunningServer {
  /** Real address, or that of the server of the same kind that was there already. */
  readonly url: string
  /** False when a server of the same kind was there already and nothing was started. */
  readonly isOurs: boolean
  /** Warnings of destinations while they were opened. They are logged after the URL. */
  readonly notes: readonly string[]
  /**
   * Uses another configuration from now on. Requests in progress keep the one that they began with.
   *
   * @returns settings that changed and need a restart: they are not applied
   * @throws when a destination can't be opened; nothing changes then
   */
  reload(config: LoadedConfig): Promise<string[]>
  /** Notes that a changed configuration was refused, so that the figures say so. */
  refused(): void
  /**
   * Stops listening, lets requests in progress finish, and serves those that still arrive on open connections, because a
   * reverse proxy can't send them elsewhere. After half of `shutdown.grace`, new ones get 503.
   *
   * @returns false when `shutdown.grace` ran out and the rest was aborted
   */
  stop(): Promise<boolean>
}

/** The graceful shutdown ends when no request has been in progress for this time. */
const QUIET_MS = 300

const PROXY_SEEN =
  'Requests arrive through a reverse proxy on this machine. Any request that it forwards without X-Forwarded-For is ' +
  'treated as local and needs no key: set auth.loopbackExempt to false'

/**
 * Starts the server of a configuration: listens on the port, then opens the destinations. Requests wait until then.
 *
 * @param quietMs see `HttpServer.stop`
 * @throws PortTakenError if no port is free; UploadError if a package that the database needs is not installed, or another
 *   version has made the database
 */
export async function startServer(
  config: LoadedConfig,
  deps: ServerDeps,
  quietMs: number = QUIET_MS,
): Promise<RunningServer> {
  const { server: listener } = config.settings
  const { logger } = deps
  let url = urlOf(listener)
  let stopping = false
  let refusing = false
  const notes: string[] = []
  /** Objects made from the current configuration. A reload replaces them; each request reads them once. */
  let current: ConfiguredApp | undefined
  let open = () => {}
  const opened = new Promise<void>(resolve => {
    open = resolve
  })

  const { server, stop } = createHttpServer(
    (req, res) => {
      if (current) current.answer(req, res)
      else void opened.then(() => current?.answer(req, res))
    },
    (requestId, status, message, address) => logger.warn({ requestId, address, res: { status } }, message),
  )
  const taken = await takePort(server, listener, listener.strictPort)
  url = taken.url
  if (taken.kind === 'already-running') return notOurs(url)

  /** Requests wait on the port already. If the start fails, they must end. */
  const orStop = async <T>(work: () => T | Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      await stop(0, 0)
      throw error
    }
  }
  const runtime = await orStop(() => createRuntime(config, deps))
  let knowsProxy = false
  const housekeeping = createHousekeeping(runtime)
  const around: ConfiguredAppDeps = {
    ...deps,
    putQueues: deps.putQueues ?? createPutQueues(),
    runtime,
    housekeeping,
    limiters: createLimiters(),
    metrics: once(async () => (await import('../routes/metrics.ts')).createMetrics()),
    dueNow: createCautiousClock(),
    warn: message => void (current ? logger.warn(message) : notes.push(message)),
    isStopping: () => stopping,
    isRefusing: () => refusing,
    noteProxy() {
      if (!knowsProxy) logger.warn(PROXY_SEEN)
      knowsProxy = true
    },
    listenUrl: () => (url.startsWith('unix:') ? 'http://localhost' : url),
  }
  const first = await orStop(async () => {
    const app = await openConfiguredApp(config, around)
    await announce(app).catch(error => app.close().finally(() => Promise.reject(error)))
    return app
  }).catch(async error => {
    await runtime.close()
    throw error
  })
  let lastReload: Promise<unknown> = Promise.resolve()
  use(first) // Nothing may be awaited from here to the log line with the URL.
  open()

  function use(next: ConfiguredApp): void {
    const old = current
    current = next
    next.start()
    if (old) runtime.background.run(old.retire())
  }

  /**
   * Has commands find this server. A database that can't be used for another reason may be there later, and the housekeeping logs it.
   *
   * @throws OtherSchema
   */
  async function announce({ places }: ConfiguredApp): Promise<void> {
    await runtime.owner.serve({ url, destinations: places }).catch(error => {
      if (error instanceof OtherSchema) throw error
    })
  }

  async function reload(wanted: LoadedConfig): Promise<string[]> {
    const { config: possible, kept } = keepFixed((current ?? first).config, wanted)
    const next = await openConfiguredApp(possible, around)
    if (stopping) {
      await next.close()
      return []
    }
    use(next)
    logger.level = possible.settings.log.level
    await announce(next).catch(() => {}) // The housekeeping logs it. The configuration is in use.
    return kept
  }

  return {
    url,
    isOurs: true,
    notes,
    reload(wanted) {
      const reloaded = lastReload.then(() => reload(wanted))
      lastReload = reloaded.catch(() => {})
      return reloaded
    },
    refused: () => current?.metrics?.reloaded(false),
    async stop() {
      stopping = true
      const last = current ?? first
      const { grace: graceMs } = last.config.settings.shutdown
      const end = performance.now() + graceMs
      const sweeperStopped = last.stopSweeping()
      const refuse = setTimeout(() => (refusing = true), graceMs / 2)
      const finished = await stop(graceMs, quietMs)
      clearTimeout(refuse)
      await sweeperStopped
      housekeeping.stop()
      await runtime.close(end - performance.now())
      await last.close()
      return finished
    },
  }
}

function notOurs(url: string): RunningServer {
  return {
    url,
    isOurs: false,
    notes: [],
    reload: () => Promise.reject(new Error('nothing was started')),
    refused: () => {},
    stop: async () => true,
  }
}

/** Keeps the options of the listener and the database, because a reload can't change them. */
function keepFixed(old: LoadedConfig, wanted: LoadedConfig): { config: LoadedConfig; kept: string[] } {
  const { host, port, socketMode, strictPort } = old.settings.server
  const settings: Settings = {
    ...wanted.settings,
    server: { ...wanted.settings.server, host, port, socketMode, strictPort },
    database: old.settings.database,
  }
  const kept = [
    ...differing(settings.server, wanted.settings.server).map(name => `server.${name}`),
    ...differing(settings.database, wanted.settings.database).map(name => `database.${name}`),
  ]
  // Only the old configuration names the database that stays in use.
  const ownPaths = [...new Set([...old.ownPaths, ...wanted.ownPaths])]
  return { config: { ...wanted, settings, dataDirectory: old.dataDirectory, ownPaths }, kept }
}

/** Names of the members whose values differ between two objects. */
export function differing(one: object, other: object): string[] {
  const all = [one, other].flatMap(object => Object.keys(object))
  const valueIn = (object: object, name: string) => membersOf(object)[name]
  return [...new Set(all)].filter(name => !isDeepStrictEqual(valueIn(one, name), valueIn(other, name)))
}
