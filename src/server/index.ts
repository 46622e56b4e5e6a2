import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { LoadedConfig } from '../config/load.ts'
import type { Settings } from '../config/schema.ts'
import { createCautiousClock } from '../flow/clock.ts'
import { membersOf } from '../members.ts'
import { answerProbeEarly } from '../routes/heartbeat.ts'
import type { ConfiguredApp, ConfiguredAppDeps } from './configured-app.ts'
import { createHttpServer } from './http-server.ts'
import type { ServerDeps } from './open-uploader.ts'
import { takePort, urlOf } from './port.ts'
import { noteServer } from './running-server.ts'

export interface RunningServer {
  /** Real address, or that of the server of the same kind that was there already. */
  readonly url: string
  /** False when a server of the same kind was there already and nothing was started. */
  readonly isOurs: boolean
  /** What the destinations warned of while they were opened; the log begins with the address. */
  readonly notes: readonly string[]
  /**
   * Answers by another configuration from now on; requests that run end with the one they began with.
   *
   * @returns settings that changed and need a new start: they stay as they are
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

/**
 * Pause for heartbeats between two parts of the program that are loaded. Node 22 and newer load all modules of a part in one go.
 */
const LOADING_PAUSE_MS = 2
/** The graceful shutdown ends when no request has been in progress for this time. */
const QUIET_MS = 300

const PROXY_SEEN =
  'Requests arrive through a reverse proxy on this machine. Any request that it forwards without X-Forwarded-For is ' +
  'treated as local and needs no key: set auth.loopbackExempt to false'

/**
 * Starts the server of a configuration: listens on the port, then opens the destinations. Heartbeats are answered at once, other
 * requests when everything is open.
 *
 * @param quietMs see `HttpServer.stop`
 * @throws PortTakenError if no port is free; UploadError if a package that the database needs is not installed
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
  const apps = createAppSwitch()

  const { server, stop } = createHttpServer(
    (req, res) => {
      const isUnlogged = !logger.isLevelEnabled('debug')
      if (isUnlogged && !stopping && answerProbeEarly(req, res, deps.mask))
        apps.current()?.metrics?.count(req, res)
      else apps.answer(req, res)
    },
    (requestId, status, message, address) => logger.warn({ requestId, address, res: { status } }, message),
  )
  const taken = await takePort(server, listener, listener.strictPort)
  url = taken.url
  if (taken.kind === 'already-running') return notOurs(url)

  let knowsProxy = false
  const { runtime, around, openConfiguredApp, first } = await open().catch(async error => {
    await stop(0, 0) // The server already answers heartbeats, which must end if the start fails.
    throw error
  })
  let lastReload: Promise<unknown> = Promise.resolve()
  const note = await noteServer(config, url, first.places).catch(() => undefined) // The database, in the same folder, then reports the error.
  apps.take(first) // Nothing may be awaited from here to the log line with the URL.

  async function open() {
    await sleep(LOADING_PAUSE_MS)
    const { createHousekeeping, createPutQueues, createRuntime, openConfiguredApp } = await import(
      './configured-app.ts'
    )
    const runtime = createRuntime(config, deps)
    const housekeeping = createHousekeeping(runtime)
    const around: ConfiguredAppDeps = {
      ...deps,
      putQueues: deps.putQueues ?? createPutQueues(),
      runtime,
      housekeeping,
      dueNow: createCautiousClock(),
      warn: message => void (apps.current() ? logger.warn(message) : notes.push(message)),
      isStopping: () => stopping,
      isRefusing: () => refusing,
      noteProxy() {
        if (!knowsProxy) logger.warn(PROXY_SEEN)
        knowsProxy = true
      },
      listenUrl: () => (url.startsWith('unix:') ? 'http://localhost' : url),
    }
    try {
      const first = await openConfiguredApp(config, around)
      await loadForUploads()
      return { runtime, around, openConfiguredApp, first }
    } catch (error) {
      await runtime.close()
      throw error
    }
  }

  async function reload(wanted: LoadedConfig): Promise<string[]> {
    const old = apps.current() ?? first
    const { config: possible, kept } = keepFixed(old.config, wanted)
    const next = await openConfiguredApp(possible, around, old)
    if (stopping) {
      await next.close()
      return []
    }
    apps.take(next)
    await note?.update(next.places).catch(() => {}) // Then links get a warning that they do not need.
    logger.level = possible.settings.log.level
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
    refused: () => apps.current()?.metrics?.reloaded(false),
    async stop() {
      stopping = true
      const { grace: graceMs } = (apps.current() ?? first).config.settings.shutdown
      const end = performance.now() + graceMs
      const open = apps.all()
      const sweepersStopped = Promise.all(open.map(one => one.stopSweeping()))
      const refuse = setTimeout(() => (refusing = true), graceMs / 2)
      const finished = await stop(graceMs, quietMs)
      clearTimeout(refuse)
      await sweepersStopped
      around.housekeeping.stop()
      await runtime.close(end - performance.now())
      await Promise.all(open.map(one => one.close()))
      await note?.forget().catch(() => {}) // The file may have been deleted already.
      return finished
    },
  }
}

/** Loads what the first upload needs, so that it is as fast as others. If a package is missing, that upload reports it. */
async function loadForUploads(): Promise<void> {
  await import('../routes/form.ts').catch(() => {})
  await sleep(LOADING_PAUSE_MS)
}

/** The app of the current configuration. Requests wait until there is one. */
function createAppSwitch() {
  let current: ConfiguredApp | undefined
  const early: (() => void)[] = []
  const retiring = new Set<ConfiguredApp>()
  return {
    /** The app in use; undefined until it is open. */
    current: () => current,
    /** The app in use, and the previous ones that still have requests in progress. */
    all: () => (current ? [current, ...retiring] : []),
    answer(...message: Parameters<ConfiguredApp['answer']>): void {
      if (current) current.answer(...message)
      else early.push(() => current?.answer(...message))
    },
    /** Replaces the app in use. */
    take(next: ConfiguredApp): void {
      const old = current
      current = next
      next.start()
      for (const answer of early.splice(0)) answer()
      if (!old) return
      retiring.add(old)
      void old.retire().finally(() => retiring.delete(old))
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
