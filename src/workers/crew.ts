import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { LoadedConfig } from '../config/load.ts'
import { type Logger, writeLogLine } from '../log.ts'
import { type Calls, connect } from './calls.ts'
import type { Desk, PrimaryMethods } from './desk.ts'
import type { Started, WorkerMethods } from './worker.ts'

const ENTRY = fileURLToPath(new URL('./worker.js', import.meta.url))
/** A worker that has listened for less than this died at once. */
const SOUND_MS = 1000
/** How often in a row the one in a place may do so. */
const MOST_EARLY_DEATHS = 5
const FIRST_PAUSE_MS = 50
/** Most time that a worker has for its end. */
const LATE_MS = 5000

export interface Member {
  readonly index: number
  readonly worker: Worker
  readonly calls: Calls<WorkerMethods>
  /** Fails when the worker ends first. */
  readonly ready: Promise<void>
  /** How often in a row the one in this place died at once. */
  readonly earlyDeaths: number
  /** Set once it takes connections, and hears what it is asked. */
  listensSince?: number
  /** What it works by. */
  knows?: LoadedConfig
}

export interface CrewDeps {
  readonly count: number
  readonly logger: Logger
  /** The configuration that holds now. */
  config(): LoadedConfig
  openDesk(): Desk
  /** Hears why there is no use in starting another worker. */
  fail(reason: string): void
}

/** The workers: one in each place, and another one when it dies. */
export interface Crew {
  /** Those that take connections now. */
  listening(): Member[]
  /** Starts all of them. @throws what the first one throws that can't start */
  start(): Promise<Started>
  /** Has one take the configuration that holds now, if it does not know that. */
  update(member: Member): Promise<void>
  /** Has dying workers not be replaced any more. */
  dismiss(): void
  /** Ends those that have nothing to do any more. */
  end(): Promise<void>
}

let reloads = 0
/** What tells a reload from others. */
export const newReload = (): number => ++reloads

export function createCrew({ count, logger, config, openDesk, fail }: CrewDeps): Crew {
  const members = new Set<Member>()
  let isReplacing = false
  /** What the first one listens at, and what all the others name for the same socket. */
  let url = ''
  let port: number | undefined
  cluster.setupPrimary({ exec: ENTRY, args: [] })

  function fork(index: number, earlyDeaths = 0): Member {
    const worker = cluster.fork()
    dropConnectionOnExit(worker)
    const desk = openDesk()
    let isReady = () => {}
    let hasEnded = (_reason: Error) => {}
    const ready = new Promise<void>((resolve, reject) => {
      isReady = resolve
      hasEnded = reject
    })
    ready.catch(() => {})
    const calls = connect<WorkerMethods, PrimaryMethods>(worker, {
      ...desk.methods,
      ready: isReady,
      print: writeLogLine,
    })
    const member: Member = { index, worker, calls, ready, earlyDeaths }
    members.add(member)
    const leave = (how: string | number) => {
      if (!members.delete(member)) return
      desk.close()
      const reason = new Error(`Worker ${index} ended with ${how}.`)
      hasEnded(reason)
      calls.end(reason)
      if (isReplacing) replace(member, how)
    }
    worker.once('exit', (code, signal) => leave(signal ?? code))
    // The system gives no process, or there is no talking to it.
    worker.on('error', (error: Error) => {
      worker.process.kill('SIGKILL')
      leave(error.message)
    })
    return member
  }

  async function begin(member: Member): Promise<Started> {
    member.knows = config()
    const { settings, dataDirectory, ownPaths, raw } = member.knows
    const fixed = { settings, dataDirectory, ownPaths }
    await member.ready
    const started = await member.calls.call('start', { index: member.index, count, raw, fixed, port })
    member.listensSince = performance.now()
    await update(member)
    return started
  }

  /** What was reloaded while it started. */
  async function update(member: Member): Promise<void> {
    while (member.knows !== config()) {
      const next = config()
      const reload = newReload()
      await member.calls.call('prepare', reload, next.raw)
      await member.calls.call('commit', reload)
      member.knows = next
    }
  }

  const listening = () => [...members].filter(one => one.listensSince !== undefined)

  function replace({ index, worker, earlyDeaths, listensSince }: Member, how: string | number): void {
    const isSound = listensSince !== undefined && performance.now() - listensSince >= SOUND_MS
    const deaths = isSound ? 0 : earlyDeaths + 1
    const which = { worker: index, pid: worker.process.pid }
    logger.error(which, `Worker ${index} ended with ${how}`)
    if (deaths < MOST_EARLY_DEATHS)
      setTimeout(() => void startAnother(index, deaths), FIRST_PAUSE_MS * 2 ** deaths)
    else fail(`Worker ${index} died ${deaths} times as soon as it was started: see the lines above`)
  }

  async function startAnother(index: number, deaths: number): Promise<void> {
    if (!isReplacing) return
    // The socket is gone with the last one that listened; any free port would be another one now.
    if (listening().length === 0) port = portOf(url)
    const member = fork(index, deaths)
    const { process } = member.worker
    const which = { worker: index, pid: process.pid }
    try {
      await begin(member)
      logger.info(which, `Worker ${index} was replaced`)
    } catch (error) {
      if (!isReplacing) return
      logger.error(which, `Worker ${index} can't start: ${(error as Error).message}`)
      process.kill('SIGKILL')
    }
  }

  return {
    listening,
    update,
    async start() {
      const [first, ...others] = Array.from({ length: count }, (_, place) => fork(place + 1))
      const started = await begin(first as Member)
      if (!started.isOurs) return started
      url = started.url
      const wanted = config().settings.server.port
      port = wanted === 0 ? 0 : portOf(url)
      await Promise.all(others.map(begin))
      if (members.size < count) throw new Error('A worker ended while the others were started.')
      isReplacing = true
      return started
    },
    dismiss() {
      isReplacing = false
    },
    async end() {
      const ends = [...members].map(async ({ worker }) => {
        if (!worker.process.connected) return
        const ended = once(worker.process, 'exit')
        const late = setTimeout(() => worker.process.kill('SIGKILL'), LATE_MS)
        worker.process.disconnect() // which no worker survives
        await ended
        clearTimeout(late)
      })
      await Promise.all(ends)
    },
  }
}

/**
 * node:cluster forgets the connection that it is handing to a worker when that dies: its client would wait for ever. One
 * that has arrived is closed here already, and once more does no harm.
 */
function dropConnectionOnExit({ process: child }: Worker): void {
  const send = child.send.bind(child) as (...args: unknown[]) => boolean
  let connection: { close?(): void } | undefined
  child.send = (...args: unknown[]) => {
    if (args[1]) connection = args[1]
    return send(...args)
  }
  child.once('exit', () => connection?.close?.())
}

/** None for a Unix socket. */
function portOf(url: string): number | undefined {
  return url.startsWith('http:') ? Number(new URL(url).port || 80) : undefined
}
