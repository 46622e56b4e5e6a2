import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LoadedConfig } from '../config/load.ts'
import type { Settings } from '../config/schema.ts'
import { keepFixed, type RunningServer, startServer } from '../server/index.ts'
import type { ServerDeps } from '../server/open-uploader.ts'
import { PortTakenError, removeLeftSocket } from '../server/port.ts'
import { createSharedTurns } from '../uploader/delivery/shared-turns.ts'
import { createCrew, type Member, newReload } from './crew.ts'
import { createDesk } from './desk.ts'

/** What a worker may take beyond `shutdown.graceMs` to stop. */
const LATE_MS = 5000
/** Workers that died, of which the figures are remembered. */
const MOST_GONE = 100

/**
 * Starts as many processes as `server.workers` says, which answer at one socket over one store. One that dies is
 * replaced. When it comes to one worker, this process does the work.
 *
 * @throws PortTakenError when no port can be had
 */
export async function startWorkers(config: LoadedConfig, deps: ServerDeps): Promise<RunningServer> {
  const { count, notes } = countWorkers(config.settings)
  if (count === 1) {
    const server = await startServer(config, deps)
    return { ...server, notes: [...notes, ...server.notes] }
  }
  const turns = createSharedTurns()
  let current = config
  /** What each worker has told last: what was counted does not become less when one dies. */
  let told = new Map<Member['calls'], object[]>()
  let fail = (_reason: string) => {}
  const failed = new Promise<string>(resolve => {
    fail = resolve
  })
  const crew = createCrew({
    count,
    logger: deps.logger,
    config: () => current,
    openDesk: () => createDesk(turns, readMetrics),
    fail: reason => fail(reason),
  })

  /** What came of it at those that live. @throws what one of them throws */
  async function ask<T>(members: Member[], question: (calls: Member['calls']) => Promise<T>): Promise<T[]> {
    const answers = await Promise.allSettled(members.map(({ calls }) => question(calls)))
    return answers.flatMap((answer, index) => {
      if (answer.status === 'fulfilled') return [answer.value]
      // One that died meanwhile is replaced by one that knows better.
      if (crew.listening().includes(members[index] as Member)) throw answer.reason
      return []
    })
  }

  async function readMetrics(): Promise<string> {
    const answered: typeof told = new Map()
    const [{ sumFigures }] = await Promise.all([
      import('../routes/metrics.ts'),
      ask(crew.listening(), async calls => answered.set(calls, await calls.call('figures'))),
    ])
    for (const calls of answered.keys()) told.delete(calls)
    const gone = [...told].slice(-MOST_GONE)
    told = new Map([...gone, ...answered])
    return sumFigures(
      [...answered.values()],
      gone.map(([, figures]) => figures),
    )
  }

  // Workers could not do it: node:cluster counts how often each of them names a socket.
  await removeLeftSocket(config.settings.server)
  const started = await crew.start().catch(async error => {
    await crew.end()
    throw error.name === 'PortTakenError' ? new PortTakenError(error.message) : error
  })
  if (!started.isOurs) await crew.end()

  return {
    ...started,
    notes: [...notes, ...started.notes],
    failed,
    async reload(wanted) {
      const { config: possible, kept } = keepFixed(current, wanted)
      const asked = crew.listening()
      const id = newReload()
      try {
        await ask(asked, calls => calls.call('prepare', id, wanted.raw))
      } catch (error) {
        await ask(asked, calls => calls.call('discard', id))
        throw error
      }
      current = possible
      for (const member of asked) member.knows = possible
      await ask(asked, calls => calls.call('commit', id))
      // Those that came meanwhile.
      await Promise.allSettled(crew.listening().map(crew.update))
      deps.logger.level = possible.settings.log.level
      return kept
    },
    async stop() {
      crew.dismiss()
      const end = sleep(current.settings.shutdown.graceMs + LATE_MS, false, { ref: false })
      const asked = crew.listening()
      const inTime = (question: (calls: Member['calls']) => Promise<boolean>) =>
        Promise.all(asked.map(({ calls }) => Promise.race([question(calls).catch(() => false), end])))
      const drained = await inTime(calls => calls.call('drain'))
      const stopped = await inTime(calls => calls.call('stop'))
      await crew.end()
      return [...drained, ...stopped].every(Boolean)
    },
  }
}

/** No more workers than uploads at the same time, of which each takes one at least. */
function countWorkers({ server, limits }: Settings): { count: number; notes: string[] } {
  const wanted = server.workers === 'auto' ? availableParallelism() : server.workers
  const most = limits.concurrentUploads
  if (wanted <= most) return { count: wanted, notes: [] }
  const note = `limits.concurrentUploads is ${most}: there are no more workers than that, not ${wanted}`
  return { count: most, notes: [note] }
}
