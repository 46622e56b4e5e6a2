import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { dropOwner, newOwner, SCOPE } from '../../../src/flow/owner.ts'
import type { JobState, Store } from '../../../src/store/contract.ts'
import { createSqliteStore } from '../../../src/store/sqlite.ts'
import type { RetryContext } from '../../../src/uploader/delivery/claims.ts'
import {
  createIdempotency,
  type Idempotency,
  type NewResponse,
} from '../../../src/uploader/jobs/idempotency.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { eventually } from '../../helpers/eventually.ts'
import { lockSqlite } from '../../helpers/sqlite.ts'
import { newJob } from '../../helpers/stores.ts'

/** The context of a request that reserves its key. */
const reservedBy = (owner: string) =>
  ({ reservation: { fingerprint: 'print', owner, seed: owner, createdAt: Date.now() } }) as RetryContext

/** A process of another machine. */
const ELSEWHERE = 'elsewhere-01234567.1.0123456789ab'

let directory: string
beforeEach(async () => {
  directory = await makeDirectory()
})

interface Running {
  idempotency: Idempotency
  store: Store
  owner: string
}

function open({ owner = newOwner(SCOPE), patienceMs = 30_000, now = Date.now } = {}): Running {
  const store = createSqliteStore(join(directory, 'store.db'), { patienceMs: 200 })
  onTestFinished(() => store.close())
  return { store, owner, idempotency: createIdempotency(store, owner, patienceMs, now) }
}

/** Counts how often something is done. `go` lets it end. */
function makeWork(answer: Partial<NewResponse> = {}) {
  let runs = 0
  let go = () => {}
  const gate = new Promise<void>(resolve => {
    go = resolve
  })
  const run = async (): Promise<NewResponse> => {
    runs++
    await gate
    return { status: 200, body: `{"run":${runs}}`, jobId: undefined, keep: 'response', ...answer }
  }
  return { run, runs: () => runs, go: () => go() }
}

const lockStore = () => lockSqlite(join(directory, 'store.db'))

/** Begins a job as an upload does, which reserves the key. @returns its ID */
async function begin({ store, owner }: Running, { reservation }: RetryContext, key = 'k'): Promise<string> {
  const job = newJob({ createdAt: Date.now(), owner })
  await store.begin(job, key, reservation)
  return job.id
}

const ask = (
  running: Running,
  run: () => Promise<NewResponse>,
  signal = new AbortController().signal,
  fingerprint = 'print',
) =>
  running.idempotency.respondOnce(
    'k',
    fingerprint,
    async context => {
      await begin(running, context)
      return run()
    },
    signal,
  )

describe('requests with the same key at once', () => {
  it('are answered by one run, whichever process they come to', async () => {
    const all = [open(), open(), open()]
    const work = makeWork()
    const answers = Array.from({ length: 30 }, (_, n) => ask(all[n % 3]!, work.run))
    await eventually(() => expect(work.runs()).toBe(1))
    await sleep(100)
    work.go()
    for (const answer of await Promise.all(answers)) expect(answer).toMatchObject({ body: '{"run":1}' })
    expect(work.runs()).toBe(1)
  })

  it('go on when the client of one that waits leaves', async () => {
    const here = open()
    const work = makeWork()
    const first = ask(here, work.run)
    await eventually(() => expect(work.runs()).toBe(1))
    const leave = new AbortController()
    const second = ask(here, work.run, leave.signal)
    const third = ask(open(), work.run, leave.signal)
    await sleep(50)
    leave.abort(new Error('left'))
    await expect(second).rejects.toThrow('left')
    await expect(third).rejects.toThrow('left')
    work.go()
    expect(await first).toMatchObject({ status: 200 })
    expect(work.runs()).toBe(1)
  })

  it('but of something else are refused at once', async () => {
    const here = open()
    const work = makeWork()
    const first = ask(here, work.run)
    await eventually(() => expect(work.runs()).toBe(1))
    for (const process of [here, open()]) {
      const other = ask(process, work.run, undefined, 'other')
      await expect(other).rejects.toMatchObject({ code: 'idempotency_key_reused' })
    }
    work.go()
    await first
  })

  it('are tried one after the other while they fail', async () => {
    const here = open()
    let runs = 0
    const run = async (): Promise<NewResponse> => {
      runs++
      if (runs < 3) throw new Error(`no luck ${runs}`)
      return { status: 200, body: '{}', jobId: undefined, keep: 'response' }
    }
    const outcomes = await Promise.allSettled([
      ask(here, run),
      ask(here, run),
      ask(here, run),
      ask(here, run),
    ])
    expect(outcomes.map(outcome => outcome.status)).toEqual([
      'rejected',
      'rejected',
      'fulfilled',
      'fulfilled',
    ])
    expect(runs).toBe(3)
  })
})

describe('when everything was stored', () => {
  /** Uploads as a process does that lives on. */
  async function store(running: Running): Promise<string> {
    let jobId = ''
    const run = async (context: RetryContext): Promise<NewResponse> => {
      jobId = await begin(running, context)
      const delivery = { owner: running.owner, files: [], steps: [], history: [], now: 1 }
      await running.store.deliver(jobId, { ...delivery, state: 'finished' })
      return { status: 200, body: '{}', jobId: undefined, keep: 'job' }
    }
    await running.idempotency.respondOnce('k', 'print', run, new AbortController().signal)
    return jobId
  }

  it('a repetition gets the job, in every process, and no response is saved', async () => {
    const [here, there] = [open(), open({ owner: ELSEWHERE })]
    const jobId = await store(here)
    const work = makeWork()
    for (const one of [here, there]) expect(await ask(one, work.run)).toEqual({ status: undefined, jobId })
    expect(work.runs()).toBe(0)
    expect(await here.store.idempotencyRecord('k')).toMatchObject({ jobId, response: undefined })
  })

  it('and the job was forgotten, a repetition is a new request', async () => {
    const [here, there] = [open({ owner: ELSEWHERE }), open()]
    await store(here)
    await here.store.pruneJobs(Date.now() + 1000)
    const work = makeWork()
    work.go()
    expect(await ask(there, work.run)).toMatchObject({ body: '{"run":1}' })
  })
})

it('an answer that is not kept is a new attempt for the next', async () => {
  const here = open()
  const work = makeWork({ keep: 'nothing' })
  work.go()
  await ask(here, work.run)
  await ask(open(), work.run, undefined, 'other')
  expect(work.runs()).toBe(2)
})

it('a key is new after 24 hours, in every process', async () => {
  const day = 24 * 60 * 60 * 1000
  let clock = 1_000_000_000_000
  const now = () => clock
  const all = [open({ now }), open({ now })]
  const work = makeWork()
  work.go()
  await ask(all[0]!, work.run)
  clock += day
  expect(await ask(all[1]!, work.run)).toMatchObject({ body: '{"run":1}' })
  await expect(ask(all[1]!, work.run, undefined, 'other')).rejects.toThrow('another request')
  clock += 1
  const answers = await Promise.all([0, 1, 0, 1].map(n => ask(all[n]!, work.run, undefined, 'other')))
  expect(answers).toMatchObject(answers.map(() => ({ body: '{"run":2}' })))
  expect(work.runs()).toBe(2)
})

it('a new attempt has the time and the seed of the first one when the clock was set since then', async () => {
  let clock = 1_000_000_000_000
  const here = open({ now: () => clock })
  const seen: RetryContext[] = []
  const ask = () =>
    here.idempotency.respondOnce(
      'k',
      'print',
      async retryContext => {
        seen.push(retryContext)
        await begin(here, retryContext)
        return { status: 502, body: '{}', jobId: undefined, keep: 'nothing' }
      },
      new AbortController().signal,
    )
  await ask()
  for (const byMs of [60 * 60_000, -30 * 24 * 60 * 60_000]) {
    clock += byMs
    await ask()
  }
  expect(seen.map(({ time, seed }) => [time, seed])).toEqual(
    Array(3).fill([1_000_000_000_000, seen[0]?.seed]),
  )
})

describe('when the store breaks while a request runs', () => {
  it('its answer is given, and kept until it can be saved', async () => {
    const [here, there] = [open(), open()]
    const work = makeWork()
    const first = ask(here, work.run)
    await eventually(() => expect(work.runs()).toBe(1))
    const unlock = lockStore()
    work.go()
    expect(await first).toMatchObject({ body: '{"run":1}' })
    expect(await ask(here, work.run)).toMatchObject({ body: '{"run":1}' })
    unlock()
    expect(await ask(there, work.run)).toMatchObject({ body: '{"run":1}' })
    expect(work.runs()).toBe(1)
  })

  it('and it comes to nothing, nobody waits for its key for ever', async () => {
    const [here, there] = [open(), open()]
    await here.store.owners()
    const unlock: (() => void)[] = []
    const failing = async () => {
      unlock.push(lockStore())
      throw new Error('no luck')
    }
    await expect(ask(here, failing)).rejects.toThrow('no luck')
    for (const free of unlock) free()
    const work = makeWork()
    work.go()
    expect(await ask(there, work.run, AbortSignal.timeout(5000))).toMatchObject({ status: 200 })
  })

  it('and it comes to nothing, nobody waits for its key for ever when it came again meanwhile', async () => {
    const [here, there] = [open(), open()]
    await here.store.owners()
    const unlock: (() => void)[] = []
    const failing = async () => {
      unlock.push(lockStore())
      throw new Error('no luck')
    }
    await expect(ask(here, failing)).rejects.toThrow('no luck')
    await expect(ask(here, failing)).rejects.toMatchObject({ code: 'store_unavailable' })
    for (const free of unlock) free()
    const work = makeWork()
    work.go()
    expect(await ask(there, work.run, AbortSignal.timeout(5000))).toMatchObject({ status: 200 })
  })

  it('and it comes to nothing, the next attempt is not disturbed by what is saved late', async () => {
    const here = open()
    await here.store.owners()
    const unlock: (() => void)[] = []
    await ask(here, async () => {
      unlock.push(lockStore())
      throw new Error('no luck')
    }).catch(() => {})
    for (const free of unlock) free()
    const work = makeWork()
    const second = ask(here, work.run)
    await eventually(() => expect(work.runs()).toBe(1))
    await sleep(1500)
    expect(await here.store.idempotencyRecord('k')).toMatchObject({ owner: here.owner })
    work.go()
    await second
  })

  it('what could not be saved is saved at the end', async () => {
    const here = open()
    const work = makeWork()
    const first = ask(here, work.run)
    await eventually(() => expect(work.runs()).toBe(1))
    const unlock = lockStore()
    work.go()
    await first
    unlock()
    await here.idempotency.close()
    expect(await here.store.idempotencyRecord('k')).toMatchObject({ response: { body: '{"run":1}' } })
  })
})

describe('after a kill -9', () => {
  /** Leaves a key behind as a process does that is killed when its job is in this state. */
  async function leaveBehind(state: JobState, owner = newOwner(SCOPE)): Promise<string> {
    const { store } = open()
    dropOwner(owner)
    const id = randomUUID()
    const job = {
      id,
      createdAt: Date.now(),
      owner,
      requestId: 'r',
      caller: 'c',
      destination: 'd',
      origins: ['a'],
    }
    await store.begin(job, 'k', { fingerprint: 'print', owner, seed: 's', createdAt: Date.now() })
    if (state === 'interrupted') await store.abandon(owner, () => {})
    else if (state !== 'uploading') {
      await store.deliver(id, { state, owner, files: [], steps: [], history: [], now: 1 })
    }
    return id
  }

  it.each(['uploading', 'interrupted', 'failed'] as const)(
    'of a request whose job was %s, a repetition does it',
    async state => {
      await leaveBehind(state)
      const work = makeWork()
      work.go()
      const answers = await Promise.all([open(), open(), open()].map(process => ask(process, work.run)))
      expect(answers.map(answer => answer.status)).toEqual([200, 200, 200])
      expect(work.runs()).toBe(1)
    },
  )

  it.each(['finalizing', 'delivered', 'finished'] as const)(
    'of a request whose job was %s, a repetition gets that job and uploads nothing',
    async state => {
      const jobId = await leaveBehind(state)
      const work = makeWork()
      expect(await ask(open(), work.run)).toEqual({ status: undefined, jobId })
      expect(work.runs()).toBe(0)
    },
  )

  it('on another machine, a repetition does it after a while', async () => {
    await leaveBehind('uploading', ELSEWHERE)
    const work = makeWork()
    work.go()
    const start = performance.now()
    expect(await ask(open({ patienceMs: 800 }), work.run)).toMatchObject({ status: 200 })
    expect(performance.now() - start).toBeGreaterThanOrEqual(800)
  })

  it('several keys of other machines are waited for at once', async () => {
    const { store, idempotency } = open({ patienceMs: 800 })
    const owners = ['a', 'b', 'c'].map(host => `${host}-01234567.1.0123456789ab`)
    for (const owner of owners) await begin({ store, owner, idempotency }, reservedBy(owner), owner)
    const work = makeWork()
    work.go()
    const signal = AbortSignal.timeout(10_000)
    await Promise.all(owners.map(owner => idempotency.respondOnce(owner, 'print', work.run, signal)))
    expect(work.runs()).toBe(3)
  })

  it('is not what a process of another machine went through that gives signs of life', async () => {
    await leaveBehind('uploading', ELSEWHERE)
    const here = open({ patienceMs: 600 })
    const beating = setInterval(() => void here.store.beat(ELSEWHERE, Date.now()), 50)
    const work = makeWork()
    await expect(ask(here, work.run, AbortSignal.timeout(1500))).rejects.toThrow('timeout')
    clearInterval(beating)
    expect(work.runs()).toBe(0)
  })
})
