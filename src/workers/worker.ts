import '../server/v8-settings.ts'
import { checkConfig, type LoadedConfig, type RawConfig } from '../config/load.ts'
import { orAborted } from '../flow/cancellation.ts'
import { createLog, isOnTerminal } from '../log.ts'
import { createGrowingMask } from '../mask.ts'
import { keepOutputOurs, keepReportsQuiet } from '../server/crash.ts'
import { type Fixed, keepFixed, type LocalServer, type Prepared, startServer } from '../server/index.ts'
import type { SharedTurns } from '../uploader/delivery/shared-turns.ts'
import { connect } from './calls.ts'
import type { PrimaryMethods } from './desk.ts'

/** What a worker needs to know to start. */
export interface Orders {
  /** From 1 on. A worker that takes the place of another one has the same. */
  readonly index: number
  readonly count: number
  readonly raw: RawConfig
  /** What stays as it was when the server started. */
  readonly fixed: Fixed
  /** The one that the first worker has taken; undefined: this is the first one. */
  readonly port: number | undefined
}

export type Started = Pick<LocalServer, 'url' | 'isOurs' | 'notes'>

/** What the primary process asks of a worker. */
export interface WorkerMethods {
  start(orders: Orders): Promise<Started>
  /**
   * Makes ready for another configuration, once those before are taken or discarded.
   *
   * @param reload what `commit` or `discard` are told, one of which must follow
   */
  prepare(reload: number, raw: RawConfig): Promise<void>
  commit(reload: number): void
  /** Does nothing when there is nothing to discard. */
  discard(reload: number): Promise<void>
  figures(): Promise<object[]>
  /** Stops listening. Settles when what runs has finished; open connections are still answered. */
  drain(): Promise<true>
  /** @returns false when something had to be cut */
  stop(): Promise<boolean>
}

const { mask, learn } = createGrowingMask()
keepOutputOurs()
keepReportsQuiet(mask)
let divide: (config: LoadedConfig) => LoadedConfig
let starting: Promise<LocalServer> | undefined
const prepared = new Map<number, Prepared>()
let stopped: Promise<boolean> | undefined
let release = () => {}
const released = new Promise<void>(resolve => {
  release = resolve
})

// The primary says what is to be done: a terminal and systemd signal to all processes.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {})

const primary = connect<PrimaryMethods, WorkerMethods>(process, {
  async start(orders) {
    divide = createDivide(orders)
    starting = start(orders)
    const { url, isOurs, notes } = await starting
    return { url, isOurs, notes }
  },
  async prepare(reload, raw) {
    const config = divide(await checkConfig(raw))
    learn(config.secrets)
    const next = await (await starting)?.prepare(config)
    if (next) prepared.set(reload, next)
  },
  commit(reload) {
    const next = prepared.get(reload)
    if (!next) throw new Error('Nothing is prepared that could be taken.')
    prepared.delete(reload)
    next.commit()
  },
  async discard(reload) {
    const next = prepared.get(reload)
    prepared.delete(reload)
    await next?.discard()
  },
  figures: async () => (await (await starting)?.figures()) ?? [],
  async drain() {
    const server = await starting
    await new Promise<void>(resolve => {
      stopped = server?.stop(() => {
        resolve()
        return released
      })
      stopped?.catch(() => {}) // `stop` tells of it
      if (!server) resolve()
    })
    return true
  },
  async stop() {
    release()
    return (await stopped) ?? true
  },
})

// What comes before somebody listens is lost.
primary.tell('ready')

async function start({ index, raw, fixed, port }: Orders): Promise<LocalServer> {
  const config = divide(keepFixed(fixed, await checkConfig(raw)).config)
  learn(config.secrets)
  const { settings } = config
  const server = port === undefined ? settings.server : { ...settings.server, port, strictPort: true }
  const logger = createLog({
    level: settings.log.level,
    mask,
    base: { worker: index, pid: process.pid },
    // Only one process knows what people were told last.
    ...(isOnTerminal() && { stream: { write: line => primary.tell('print', line) }, isForPeople: true }),
  })
  return startServer(
    { ...config, settings: { ...settings, server } },
    {
      logger,
      mask,
      env: process.env,
      turns: createRemoteTurns(),
      readMetrics: () => primary.call('metrics'),
    },
  )
}

/** Limits are for the whole server: each worker gets its part of them, and the parts add up. */
function createDivide({ index, count }: Orders): (config: LoadedConfig) => LoadedConfig {
  const partOf = (whole: number) => Math.floor(whole / count) + (index <= whole % count ? 1 : 0)
  const partOfMany = (whole: number) => Math.max(1, partOf(whole))
  return config => {
    const { limits, auth } = config.settings
    const settings = {
      ...config.settings,
      limits: {
        ...limits,
        memory: partOfMany(limits.memory),
        concurrentUploads: partOfMany(limits.concurrentUploads),
        waitingUploads: partOf(limits.waitingUploads),
      },
      auth: { ...auth, maxFailures: auth.maxFailures === 0 ? 0 : partOfMany(auth.maxFailures) },
    }
    return { ...config, settings }
  }
}

/** What the primary keeps for all. */
function createRemoteTurns(): SharedTurns {
  let lastTurn = 0
  return {
    async take(name, content, signal) {
      signal.throwIfAborted()
      const taking = primary.call('take', name, content)
      try {
        return await orAborted(taking, signal)
      } catch (error) {
        taking.then(
          taken => taken !== 'taken' && primary.tell('release', name),
          () => {},
        )
        throw error
      }
    },
    settle: (name, stored) => primary.tell('settle', name, stored),
    release: name => primary.tell('release', name),
    async inTurn(name, work, signal) {
      const turn = ++lastTurn
      try {
        signal.throwIfAborted()
        await orAborted(primary.call('enter', turn, name), signal)
        return await work()
      } finally {
        primary.tell('leave', turn)
      }
    },
  }
}
