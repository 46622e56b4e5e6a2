import { isDeepStrictEqual } from 'node:util'
import type { LoadedConfig } from '../config/load.ts'
import type { Settings } from '../config/schema.ts'
import { answerHeartbeatEarly } from '../routes/heartbeat.ts'
import { createSharedTurns } from '../uploader/delivery/shared-turns.ts'
import type { Generation, GenerationDeps } from './generation.ts'
import { createHttpServer } from './http-server.ts'
import type { Runtime, ServerDeps } from './open-uploader.ts'
import { takePort, urlOf } from './port.ts'

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
  /** The first half of `reload`; one at a time, in the order of the calls. @throws as that does */
  prepare(config: LoadedConfig): Promise<Prepared>
  /** @param drained called when what ran has finished; open connections are answered until it is done */
  stop(drained?: () => Promise<void>): Promise<boolean>
  /** Those of this process; none when they are switched off. */
  figures(): Promise<object[]>
}

/** A configuration that is ready to be used. Either `commit` or `discard` must follow, once: the next one waits for it. */
export interface Prepared {
  /** Settings that changed and need a new start. */
  readonly kept: string[]
  commit(): void
  discard(): Promise<void>
}

const PROXY_SEEN =
  'A proxy on this machine passes requests on. One that adds no X-Forwarded-For to each makes whoever reaches it a program ' +
  'of this machine, which needs no key: set auth.loopbackExempt to false'

/**
 * Starts the server of a configuration: takes the port, then opens the destinations. Heartbeats are answered from then on,
 * other requests once everything is there.
 *
 * @throws PortTakenError when no port can be had; UploadError when a package is not installed that the store needs
 */
export async function startServer(config: LoadedConfig, deps: ServerDeps): Promise<LocalServer> {
  const { server: listener } = config.settings
  const { logger } = deps
  let url = urlOf(listener)
  let stopping = false
  const notes: string[] = []
  /** Undefined until everything is there that requests need. */
  let current: Generation | undefined
  const early: (() => void)[] = []

  const { server, stop } = createHttpServer(
    (req, res) => {
      const isUnlogged = !logger.isLevelEnabled('debug')
      if (isUnlogged && !stopping && answerHeartbeatEarly(req, res, deps.mask)) return
      if (current) current.answer(req, res)
      else early.push(() => current?.answer(req, res))
    },
    (id, status, message, address) => logger.warn({ id, address, res: { status } }, message),
  )
  const taken = await takePort(server, listener, listener.strictPort)
  url = taken.url
  if (taken.kind === 'already-running') return notOurs(url)

  const { createRuntime, openGeneration } = await import('./generation.ts')
  let runtime: Runtime
  try {
    runtime = createRuntime(config, deps)
  } catch (error) {
    await stop(0)
    throw error
  }
  let knowsProxy = false
  const around: GenerationDeps = {
    ...deps,
    turns: deps.turns ?? createSharedTurns(),
    runtime,
    warn: message => void (current ? logger.warn(message) : notes.push(message)),
    isStopping: () => stopping,
    noteProxy() {
      if (!knowsProxy) logger.warn(PROXY_SEEN)
      knowsProxy = true
    },
    listenUrl: () => (url.startsWith('unix:') ? 'http://localhost' : url),
  }
  const first = await openGeneration(config, around).catch(async error => {
    await stop(0)
    await runtime.close()
    throw error
  })
  const retiring = new Set<Generation>()
  let lastReload: Promise<void> = Promise.resolve()
  take(first)

  function take(next: Generation): void {
    const old = current
    current = next
    next.start()
    for (const answer of early.splice(0)) answer()
    if (!old) return
    retiring.add(old)
    void old.retire().finally(() => retiring.delete(old))
  }

  async function prepare(wanted: LoadedConfig): Promise<Prepared> {
    const before = lastReload
    let end = () => {}
    lastReload = new Promise(resolve => {
      end = resolve
    })
    await before
    try {
      const old = current ?? first
      const { config: possible, kept } = keepFixed(old.config, wanted)
      const next = await openGeneration(possible, around, old)
      const discard = () => next.close().finally(end)
      return {
        kept,
        commit() {
          if (stopping) return void discard()
          take(next)
          logger.level = possible.settings.log.level
          end()
        },
        discard,
      }
    } catch (error) {
      end()
      throw error
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
    figures: async () => (await current?.metrics?.figures()) ?? [],
    async stop(drained) {
      stopping = true
      const last = current ?? first
      const { graceMs } = last.config.settings.shutdown
      const end = performance.now() + graceMs
      const generations = [last, ...retiring]
      const swept = Promise.all(generations.map(one => one.stopSweeping()))
      const finished = await stop(graceMs, drained)
      await swept
      await runtime.close(end - performance.now())
      await Promise.all(generations.map(one => one.close()))
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
