import { isDeepStrictEqual } from 'node:util'
import type { LoadedConfig } from './config/load.ts'
import type { Settings } from './config/schema.ts'
import type { Generation } from './generation.ts'
import { createHttpServer, type HttpServer } from './http-server.ts'
import type { ServerDeps } from './open-uploader.ts'
import { takePort, urlOf } from './port.ts'
import { answerHeartbeatEarly } from './routes/heartbeat.ts'
import { createShared } from './uploader/shared.ts'

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
  /**
   * Stops listening and lets running requests finish.
   * @returns false when `shutdown.graceMs` ran out and the rest was aborted
   */
  stop(): Promise<boolean>
  /** Settles with the reason when it can't go on. */
  readonly failed?: Promise<string>
}

/** One that answers in this very process. */
export interface LocalServer extends RunningServer {
  /** The first half of `reload`. @throws as that does */
  prepare(config: LoadedConfig): Promise<Prepared>
  /** @param drained called when what ran has finished; open connections are answered until it is done */
  stop(drained?: () => Promise<void>): Promise<boolean>
  /** Those of this process; none when they are switched off. */
  figures(): Promise<object[]>
}

/** A configuration that is ready to be used. */
export interface Prepared {
  /** Settings that changed and need a new start. */
  readonly kept: string[]
  commit(): void
  discard(): Promise<void>
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
export async function startServer(config: LoadedConfig, deps: ServerDeps): Promise<LocalServer> {
  const { server: listener } = config.settings
  const { logger } = deps
  let url = urlOf(listener)
  let stopping = false
  const notes: string[] = []
  let isOpen = false
  const around = {
    ...deps,
    shared: deps.shared ?? createShared(),
    warn: (message: string) => void (isOpen ? logger.warn(message) : notes.push(message)),
    isStopping: () => stopping,
    listenUrl: () => (url.startsWith('unix:') ? 'http://localhost' : url),
    makeFor: (app: Parameters<HttpServer['makeFor']>[0]) => makeFor(app),
  }
  const open = async (wanted: LoadedConfig, before?: Generation) =>
    (await import('./generation.ts')).openGeneration(wanted, around, before)
  let opened: Promise<Generation> | undefined
  const current = () => {
    opened ??= open(config)
    return opened
  }

  const { server, makeFor, stop } = createHttpServer(
    (req, res) => {
      const isUnlogged = !logger.isLevelEnabled('debug')
      if (isUnlogged && !stopping && answerHeartbeatEarly(req, res, deps.mask)) return
      current().then(
        generation => generation.answer(req, res),
        () => req.destroy(),
      )
    },
    (id, status, message) => logger.warn({ id, res: { status } }, message),
  )
  const taken = await takePort(server, listener, listener.strictPort)
  url = taken.url
  if (taken.kind === 'already-running') return notOurs(url)
  await current().catch(async error => {
    await stop(0)
    throw error
  })
  isOpen = true
  const timer = setTimeout(async () => (await current()).start(), LOAD_AFTER_MS)
  const retiring = new Set<Generation>()

  async function prepare(wanted: LoadedConfig): Promise<Prepared> {
    const old = await current()
    const { config: possible, kept } = keepFixed(old.config, wanted)
    const next = await open(possible, old)
    return {
      kept,
      commit() {
        if (stopping) return void next.close()
        opened = Promise.resolve(next)
        next.start()
        logger.level = possible.settings.log.level
        retiring.add(old)
        void old.retire().finally(() => retiring.delete(old))
      },
      discard: () => next.close(),
    }
  }

  return {
    url,
    isOurs: true,
    notes,
    prepare,
    async reload(wanted) {
      const { kept, commit } = await prepare(wanted)
      commit()
      return stopping ? [] : kept
    },
    figures: async () => (await current()).figures(),
    async stop(drained) {
      stopping = true
      clearTimeout(timer)
      const last = await current()
      const { graceMs } = last.config.settings.shutdown
      const end = performance.now() + graceMs
      const finished = await stop(graceMs, drained)
      await Promise.all([last, ...retiring].map(one => one.close(end - performance.now())))
      return finished
    },
  }
}

function notOurs(url: string): LocalServer {
  const prepare = () => Promise.reject(new Error('nothing was started'))
  return {
    url,
    isOurs: false,
    notes: [],
    prepare,
    reload: prepare,
    figures: async () => [],
    stop: async () => true,
  }
}

/** What stays as it is while the server runs. */
export type Fixed = Pick<LoadedConfig, 'settings' | 'dataDirectory' | 'ownPaths'>

/** The listener, the workers and the store stay what they are while the server runs. */
export function keepFixed(old: Fixed, wanted: LoadedConfig): { config: LoadedConfig; kept: string[] } {
  const { host, port, strictPort, workers } = old.settings.server
  const settings: Settings = {
    ...wanted.settings,
    server: { ...wanted.settings.server, host, port, strictPort, workers },
    store: old.settings.store,
  }
  const kept = [
    ...differing(settings.server, wanted.settings.server).map(name => `server.${name}`),
    ...differing(settings.store, wanted.settings.store).map(name => `store.${name}`),
  ]
  // The store that stays in use is named by the old configuration alone.
  const ownPaths = [...new Set([...old.ownPaths, ...wanted.ownPaths])]
  return { config: { ...wanted, settings, dataDirectory: old.dataDirectory, ownPaths }, kept }
}

function differing(one: Record<string, unknown>, other: Record<string, unknown>): string[] {
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  return [...names].filter(name => !isDeepStrictEqual(one[name], other[name]))
}
