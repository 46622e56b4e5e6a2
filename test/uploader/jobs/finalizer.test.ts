import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { Job, Store, StoredFile } from '../../../src/store/contract.ts'
import { createSqliteStore } from '../../../src/store/sqlite.ts'
import { FinalizationPending } from '../../../src/uploader/jobs/finalization-pending.ts'
import { createFinalizer, type Finalizer, type FinalizerDeps } from '../../../src/uploader/jobs/finalizer.ts'
import type { Hook } from '../../../src/uploader/jobs/hooks.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { lockSqlite } from '../../helpers/sqlite.ts'

const never = new AbortController().signal
/** A process of another machine. */
const ELSEWHERE = 'elsewhere-01234567.1.0123456789ab'

let directory: string
beforeEach(async () => {
  directory = await makeDirectory()
})

interface Running {
  finalizer: Finalizer
  store: Store
  warnings: { message: string; details: Record<string, unknown> }[]
}

/** One process, as far as the store can tell. Those of one test share the store. */
function open(hooks: readonly Hook[], change: Partial<FinalizerDeps> = {}): Running {
  const store = createSqliteStore(join(directory, 'store.db'), { patienceMs: 200 })
  const warnings: Running['warnings'] = []
  const finalizer = createFinalizer({
    store,
    hooks,
    keepDays: 7,
    env: { PATH: process.env['PATH'] },
    mask: text => text,
    now: () => new Date(),
    warn: (message, details = {}) => void warnings.push({ message, details: { ...details } }),
    ...change,
  })
  onTestFinished(() => finalizer.close())
  return { finalizer, store, warnings }
}

/** Writes a line at each run. Fails while the file `NAME.broken` is there, waits while `NAME.slow` is. */
function makeHook(name: string) {
  const path = join(directory, name)
  const script = 'echo run >> "$0"; while [ -e "$0.slow" ]; do sleep 0.02; done; ! [ -e "$0.broken" ]'
  return {
    hook: { name, command: ['sh', '-c', script, path], timeoutMs: 20_000 } satisfies Hook,
    runs: async () =>
      (await readFile(path, 'utf8').catch(() => '')).split('\n').filter(line => line !== '').length,
    is: (state: 'slow' | 'broken') => writeFile(`${path}.${state}`, ''),
    isNot: (state: 'slow' | 'broken') => rm(`${path}.${state}`),
  }
}

function newJob(owner: string): Job {
  return {
    id: randomUUID(),
    state: 'uploading',
    createdAt: Date.now(),
    owner,
    requestId: 'r1',
    caller: 'loopback',
    destination: 'local/Default',
    origins: ['a.png'],
    files: [],
    steps: [],
    attempts: 0,
    problem: undefined,
  }
}

const FILE: StoredFile = {
  index: 0,
  origin: 'a.png',
  url: 'https://x.example/a.png',
  key: 'a.png',
  size: 3,
  contentType: 'image/png',
  sha256: 'a'.repeat(64),
}

/** An upload from its beginning to what it comes to. */
async function upload({ finalizer }: Running): Promise<{ id: string; outcome: string }> {
  const job = newJob(finalizer.owner)
  await finalizer.begin(job)
  return { id: job.id, outcome: await outcomeOf(finalizer.complete(job, [FILE], { isWhole: true })) }
}

async function outcomeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'done',
    (error: Error) => {
      expect(error).toBeInstanceOf(FinalizationPending)
      return (error as FinalizationPending).problem
    },
  )
}

const lockStore = () => lockSqlite(join(directory, 'store.db'))

describe('when the store breaks', () => {
  it('after everything was delivered: it is pending, known to the log, and finished once it is cured', async () => {
    const { hook, runs } = makeHook('hook')
    const here = open([hook])
    const job = newJob(here.finalizer.owner)
    await here.finalizer.begin(job)
    const unlock = lockStore()
    const outcome = await outcomeOf(here.finalizer.complete(job, [FILE], { isWhole: true }))
    expect(outcome).toMatch(/^Could not save the history: .* locked /)
    expect(here.warnings).toMatchObject([
      { details: { finalizationId: job.id, stored: [{ key: 'a.png', url: FILE.url }] } },
    ])
    expect(await outcomeOf(here.finalizer.retry(job.id, never))).toBe(outcome)
    expect(await runs()).toBe(0)
    unlock()
    const retries = [1, 2, 3].map(() => here.finalizer.retry(job.id, never))
    expect((await Promise.all(retries)).map(done => done?.files)).toEqual([[FILE], [FILE], [FILE]])
    expect(await runs()).toBe(1)
    expect(await here.store.history({ limit: 10 })).toHaveLength(1)
  })

  it('after everything was delivered: another process waits for the one that knows of it', async () => {
    const { hook, runs } = makeHook('hook')
    const [here, there] = [open([hook], { roundMs: 50 }), open([hook])]
    const job = newJob(here.finalizer.owner)
    await here.finalizer.begin(job)
    const unlock = lockStore()
    await outcomeOf(here.finalizer.complete(job, [FILE], { isWhole: true }))
    unlock()
    const finished = there.finalizer.retry(job.id, never)
    await sleep(100)
    here.finalizer.start()
    expect(await finished).toMatchObject({ state: 'finished', files: [FILE] })
    expect(await runs()).toBe(1)
  })

  it('after a hook has run: it is not run again', async () => {
    const [first, second] = [makeHook('first'), makeHook('second')]
    const here = open([first.hook, second.hook])
    await first.is('slow')
    const job = newJob(here.finalizer.owner)
    await here.finalizer.begin(job)
    const outcome = outcomeOf(here.finalizer.complete(job, [FILE], { isWhole: true }))
    await expect.poll(first.runs).toBe(1)
    const unlock = lockStore()
    await first.isNot('slow')
    expect(await outcome).toMatch(/Could not save/)
    unlock()
    expect(await here.finalizer.retry(job.id, never)).toMatchObject({ state: 'finished' })
    expect([await first.runs(), await second.runs()]).toEqual([1, 1])
  })

  it('and is cured: what is kept is saved at the end', async () => {
    const here = open([])
    const job = newJob(here.finalizer.owner)
    await here.finalizer.begin(job)
    const unlock = lockStore()
    await outcomeOf(here.finalizer.complete(job, [FILE], { isWhole: true }))
    unlock()
    await here.finalizer.close()
    const next = open([])
    expect(await next.store.job(job.id)).toMatchObject({ state: 'finished', files: [FILE] })
    expect(await next.store.history({ limit: 10 })).toHaveLength(1)
  })

  it('the log says so once, and not in every round', async () => {
    const here = open([], { roundMs: 10 })
    await here.store.begin(newJob('me'))
    const unlock = lockStore()
    here.finalizer.start()
    await expect.poll(() => here.warnings.length, { timeout: 10_000 }).toBe(1)
    await sleep(1000)
    unlock()
    expect(here.warnings).toHaveLength(1)
    expect(here.warnings[0]?.message).toContain('locked by another program')
  })
})

describe('two processes of one store', () => {
  it('run each step once when both are asked at once', async () => {
    const { hook, runs, is, isNot } = makeHook('hook')
    const [here, there] = [open([hook]), open([hook])]
    await is('broken')
    const { id, outcome } = await upload(here)
    expect(outcome).toBe('Hook "hook" failed: exit code 1')
    await isNot('broken')
    const retries = [here, there, here, there].map(one => one.finalizer.retry(id, never))
    for (const job of await Promise.all(retries)) expect(job).toMatchObject({ id, state: 'finished' })
    expect(await runs()).toBe(2)
  })

  it('each skip what the other has done, also when the job changed hands meanwhile', async () => {
    const [first, second] = [makeHook('first'), makeHook('second')]
    const [here, there] = [open([first.hook, second.hook]), open([first.hook, second.hook])]
    await first.is('broken')
    const { id } = await upload(here)
    await first.isNot('broken')
    await second.is('broken')
    // Each of them may be the one that fails at the second hook.
    const outcomes = await Promise.all([here, there].map(one => outcomeOf(one.finalizer.retry(id, never))))
    expect(outcomes).toEqual(outcomes.map(() => 'Hook "second" failed: exit code 1'))
    expect(await first.runs()).toBe(2)
    await second.isNot('broken')
    expect(await outcomeOf(there.finalizer.retry(id, never))).toBe('done')
    expect(await first.runs()).toBe(2)
  })

  it('wait for each other, until the client leaves', async () => {
    const { hook, is, isNot, runs } = makeHook('hook')
    const [here, there] = [open([hook]), open([hook])]
    await is('slow')
    const job = newJob(here.finalizer.owner)
    await here.finalizer.begin(job)
    const completed = here.finalizer.complete(job, [FILE], { isWhole: true })
    await expect.poll(runs).toBe(1)
    const leave = new AbortController()
    const waiting = there.finalizer.retry(job.id, leave.signal)
    await sleep(50)
    leave.abort(new Error('the client left'))
    await expect(waiting).rejects.toThrow('the client left')
    await isNot('slow')
    await completed
    expect(await there.finalizer.retry(job.id, never)).toMatchObject({ state: 'finished' })
    expect(await runs()).toBe(1)
  })
})

describe('a job of a process on another machine', () => {
  async function makeJobElsewhere({ store }: Running): Promise<string> {
    const job = newJob(ELSEWHERE)
    await store.begin(job)
    await store.deliver(job.id, {
      state: 'finalizing',
      owner: ELSEWHERE,
      files: [FILE],
      steps: ['history'],
      history: [],
      now: 1,
    })
    return job.id
  }

  it('is taken over after its patience, when that process says nothing', async () => {
    const { hook, runs } = makeHook('hook')
    const here = open([hook], { patienceMs: 600 })
    const id = await makeJobElsewhere(here)
    const start = performance.now()
    expect(await here.finalizer.retry(id, never)).toMatchObject({
      state: 'finished',
      owner: here.finalizer.owner,
    })
    expect(performance.now() - start).toBeGreaterThanOrEqual(600)
    expect(await runs()).toBe(1)
  })

  it('is left alone while that process gives signs of life', async () => {
    const { hook, runs } = makeHook('hook')
    const here = open([hook], { patienceMs: 600 })
    const id = await makeJobElsewhere(here)
    const beating = setInterval(() => void here.store.beat(ELSEWHERE, Date.now()), 50)
    const waiting = here.finalizer.retry(id, AbortSignal.timeout(1500))
    await expect(waiting).rejects.toThrow('timeout')
    clearInterval(beating)
    expect(await runs()).toBe(0)
  })

  it('is taken over by the rounds of a server that nobody asks', async () => {
    const { hook, runs } = makeHook('hook')
    const here = open([hook], { patienceMs: 600, roundMs: 50 })
    const id = await makeJobElsewhere(here)
    const uploading = newJob(ELSEWHERE)
    await here.store.begin(uploading)
    await here.store.beat(ELSEWHERE, 1)
    here.finalizer.start()
    await expect.poll(async () => (await here.store.job(id))?.state, { timeout: 10_000 }).toBe('finished')
    expect(await runs()).toBe(1)
    expect(here.warnings).toMatchObject([{ details: { jobId: uploading.id, origins: ['a.png'] } }])
    expect([...(await here.store.owners()).keys()]).toEqual([here.finalizer.owner])
  })

  it('gives signs of life while its hooks are slow', async () => {
    const { hook, runs, is, isNot } = makeHook('hook')
    const here = open([hook], { roundMs: 50 })
    await is('broken')
    const { id } = await upload(here)
    await is('slow')
    await isNot('broken')
    const finished = here.finalizer.retry(id, never)
    await expect.poll(runs).toBe(2)
    const before = (await here.store.owners()).get(here.finalizer.owner) ?? 0
    await expect
      .poll(async () => (await here.store.owners()).get(here.finalizer.owner))
      .toBeGreaterThan(before)
    await isNot('slow')
    await finished
  })
})

it('a server that rests finds what another process left when it died', async () => {
  const { finalizer, warnings } = open([], { roundMs: 5 })
  finalizer.start()
  // The name of this process without what tells it from an earlier one of the same number.
  const dead = finalizer.owner.replace(/-\d*\.[0-9a-f]+$/, '-1.0123456789ab')
  const other = createSqliteStore(join(directory, 'store.db'))
  const job = newJob(dead)
  await other.begin(job)
  await expect.poll(async () => (await other.job(job.id))?.state).toBe('interrupted')
  await other.close()
  expect(warnings).toMatchObject([{ details: { jobId: job.id } }])
})

describe('pending jobs', () => {
  it('are retried by themselves, ever more rarely', async () => {
    const { hook, runs, is } = makeHook('hook')
    let now = Date.now()
    const here = open([hook], { roundMs: 20, now: () => new Date(now) })
    await is('broken')
    const { id } = await upload(here)
    here.finalizer.start()
    for (const [attempts, pauseMs] of [5000, 10_000, 20_000, 40_000].entries()) {
      now += pauseMs - 1
      await sleep(100)
      expect(await runs()).toBe(attempts + 1)
      now += 1
      await expect.poll(async () => (await here.store.job(id))?.attempts).toBe(attempts + 2)
    }
  })

  it('that were planned by a clock that has been set back are retried, also after a restart', async () => {
    const { hook, runs, is } = makeHook('hook')
    const day = 24 * 60 * 60 * 1000
    let now = Date.now()
    await is('broken')
    const here = open([hook], { roundMs: 20, now: () => new Date(now) })
    const { id } = await upload(here)
    now -= day
    here.finalizer.start()
    await expect.poll(async () => (await here.store.job(id))?.attempts).toBe(2)
    await here.finalizer.close()
    now -= day
    const next = open([hook], { roundMs: 20, now: () => new Date(now) })
    next.finalizer.start()
    await expect.poll(async () => (await next.store.job(id))?.attempts).toBe(3)
    now += 10_000 - 1
    await sleep(100)
    expect(await runs()).toBe(3)
  })

  it('that fail do not keep others from being finished', async () => {
    const { hook, is, isNot } = makeHook('hook')
    const picky = { ...hook, name: 'picky', command: ['sh', '-c', 'test -e "$0/$UPLOAD_ID"', directory] }
    let now = Date.now()
    const here = open([hook, picky], { roundMs: 20, now: () => new Date(now) })
    await is('broken')
    const ids = [await upload(here), await upload(here), await upload(here)].map(({ id }) => id)
    await isNot('broken')
    await writeFile(join(directory, ids[2]!), '')
    now += 60_000
    here.finalizer.start()
    const states = async () => Promise.all(ids.map(async id => (await here.store.job(id))?.state))
    await expect.poll(states).toEqual(['delivered', 'delivered', 'finished'])
  })

  it('are finished by a request that came while an attempt was about to fail', async () => {
    const { hook, runs } = makeHook('hook')
    const script = 'echo run >> "$0"; test -e "$0.mended"; ended=$?; sleep 0.3; exit $ended'
    const flaky = { ...hook, command: ['sh', '-c', script, join(directory, 'hook')] }
    let now = Date.now()
    const here = open([flaky], { roundMs: 20, now: () => new Date(now) })
    const { id } = await upload(here)
    now += 60_000
    here.finalizer.start()
    await expect.poll(runs).toBe(2)
    await sleep(100) // so that the hook has looked for the file
    await writeFile(join(directory, 'hook.mended'), '')
    const requests = [1, 2, 3].map(() => here.finalizer.retry(id, AbortSignal.timeout(10_000)))
    expect((await Promise.all(requests)).map(job => job?.state)).toEqual(['finished', 'finished', 'finished'])
    expect(await runs(), 'all wait for the same attempt').toBe(3)
  })

  it('of a hook that was taken out of the configuration are finished', async () => {
    const { hook, is } = makeHook('hook')
    await is('broken')
    const before = open([hook])
    const { id } = await upload(before)
    await before.finalizer.close()
    expect(await open([]).finalizer.retry(id, never)).toMatchObject({ state: 'finished' })
  })
})

describe('after a reload', () => {
  it('pending jobs are finished by the new hooks, what began before by its own', async () => {
    const [first, second] = [makeHook('first'), makeHook('second')]
    const here = open([first.hook])
    await first.is('broken')
    const pending = await upload(here)
    await first.isNot('broken')
    const job = newJob(here.finalizer.owner)
    await here.finalizer.begin(job)
    here.finalizer.adopt({ hooks: [second.hook], keepDays: 7 })
    await here.finalizer.complete(job, [FILE], { isWhole: true, hooks: [first.hook] })
    expect([await first.runs(), await second.runs()]).toEqual([2, 0])
    await here.finalizer.retry(pending.id, never)
    expect([await first.runs(), await second.runs()]).toEqual([2, 1])
  })
})

describe('the end', () => {
  it('waits for a hook within its grace', async () => {
    const { hook, runs, is, isNot } = makeHook('hook')
    const here = open([hook])
    await is('slow')
    const uploaded = upload(here)
    await expect.poll(runs).toBe(1)
    const closed = here.finalizer.close(10_000)
    await isNot('slow')
    expect(await uploaded).toMatchObject({ outcome: 'done' })
    await closed
  })

  it('cuts a slow hook short, and the next start runs it first of all', async () => {
    const { hook, runs, is, isNot } = makeHook('hook')
    const here = open([hook])
    await is('slow')
    const uploaded = upload(here)
    await expect.poll(runs).toBe(1)
    const start = performance.now()
    await here.finalizer.close(100)
    expect(performance.now() - start).toBeLessThan(2000)
    const { id, outcome } = await uploaded
    expect(outcome).toContain('shutting down')
    const next = open([hook], { roundMs: 50 })
    expect(await next.store.job(id)).toMatchObject({ state: 'delivered', attempts: 0 })
    await isNot('slow')
    next.finalizer.start()
    await expect.poll(async () => (await next.store.job(id))?.state).toBe('finished')
    expect(await runs()).toBe(2)
  })

  it('does not take long while the store is locked', async () => {
    const here = open([])
    await upload(here)
    const unlock = lockStore()
    const start = performance.now()
    await here.finalizer.close()
    expect(performance.now() - start).toBeLessThan(6000)
    unlock()
  })

  it('is the end: nothing begins after it, and the store stays closed', async () => {
    const { hook, runs, is } = makeHook('hook')
    const here = open([hook], { roundMs: 10 })
    await is('broken')
    await upload(here)
    await here.finalizer.close()
    here.finalizer.start()
    const path = join(directory, 'store.db')
    for (const end of ['', '-wal', '-shm']) await rm(path + end, { force: true })
    await sleep(100)
    await expect(here.finalizer.begin(newJob('me'))).rejects.toMatchObject({ code: 'shutting_down' })
    expect(existsSync(path)).toBe(false)
    expect(await runs()).toBe(1)
  })

  it('takes the process out of the store', async () => {
    const [here, there] = [open([]), open([])]
    await upload(here)
    expect([...(await there.store.owners()).keys()]).toEqual([here.finalizer.owner])
    await here.finalizer.close()
    expect([...(await there.store.owners()).keys()]).toEqual([])
  })
})

describe('a hook that is not required', () => {
  it('one silent chat server turned every upload into 424: it fails, is tried again, and keeps nothing pending', async () => {
    const [chat, other] = [makeHook('chat'), makeHook('other')]
    await chat.is('broken')
    const running = open([{ ...chat.hook, required: false }, other.hook])
    const { id, outcome } = await upload(running)
    expect(outcome).toBe('done')
    expect([await chat.runs(), await other.runs()]).toEqual([1, 1])
    expect((await running.store.job(id))?.state).toBe('delivered')

    expect(await running.finalizer.retry(id, never)).toMatchObject({ state: 'finished' })
    await chat.isNot('broken')
    await running.finalizer.retry(id, never)
    expect((await running.store.job(id))?.state).toBe('finished')
    expect([await chat.runs(), await other.runs()]).toEqual([3, 1])
  })

  it('is in the log when a required one fails behind it, too', async () => {
    const [chat, other] = [makeHook('chat'), makeHook('other')]
    await chat.is('broken')
    await other.is('broken')
    const running = open([{ ...chat.hook, required: false }, other.hook])
    await upload(running)
    expect(running.warnings.map(({ message }) => message)).toEqual([
      expect.stringContaining('Hook "chat" failed: '),
      expect.stringContaining('Hook "other" failed: '),
    ])
  })

  it('is given up after 8 attempts, and the log says so', async () => {
    const chat = makeHook('chat')
    await chat.is('broken')
    const running = open([{ ...chat.hook, required: false }])
    const { id } = await upload(running)
    for (let n = 0; n < 10; n++) await running.finalizer.retry(id, never)
    expect(await chat.runs()).toBe(8)
    expect((await running.store.job(id))?.state).toBe('finished')
    expect(running.warnings.at(-1)?.message).toContain('The hook is not required and is not retried again.')
  })
})
