import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, describe, expect, it } from 'vitest'
import type { Upload } from '../../src/store/contract.ts'
import { findFiles } from '../../src/store/history.ts'
import { advance } from '../../src/store/pending.ts'
import { sql } from '../../src/store/sql.ts'
import { readUpload } from '../../src/store/upload-rows.ts'
import { FinalizationPending, LONGEST_PAUSE_MS } from '../../src/uploader/finalize.ts'
import type { Hook } from '../../src/uploader/hooks.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { lockSqlite } from '../helpers/sqlite.ts'
import { openProcess, type TestProcess } from '../helpers/uploader.ts'

const never = new AbortController().signal

let directory: string
beforeEach(async () => {
  directory = await makeDirectory()
})

/** One process. Those of one test share the database. @param onPut is waited for by each put */
function open(hooks: readonly Hook[], onPut = async (_key: string) => {}): Promise<TestProcess> {
  const put = async ({ key }: { readonly key: string }) => {
    await onPut(key)
    return { url: `https://x.example/${key}` }
  }
  return openProcess({ one: { target: { put } } }, { hooks }, directory)
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

/** Why an upload is pending, and its ID. */
async function pending(work: Promise<unknown>): Promise<{ id: string; problem: string }> {
  const error = await work.then(
    () => expect.fail('it is not pending'),
    (reason: unknown) => reason,
  )
  if (!(error instanceof FinalizationPending)) expect.fail(String(error))
  return { id: error.finalizationId, problem: error.problem }
}

const upload = ({ send }: TestProcess) => send({ 'a.png': 'one' })
const retry = ({ finalizer }: TestProcess, id: string) => finalizer.retry(id, undefined, never)
const read = ({ database }: TestProcess, id: string): Promise<Upload | undefined> =>
  database.read(db => readUpload(db, id))
const lockDatabase = () => lockSqlite(join(directory, 'store.db'))

/** Uploads while the hook is broken. @returns the ID of the upload */
async function uploadPending(at: TestProcess, hook: ReturnType<typeof makeHook>): Promise<string> {
  await hook.is('broken')
  const { id } = await pending(upload(at))
  await hook.isNot('broken')
  return id
}

describe('when the database breaks', () => {
  /** A process whose database is locked once everything is stored. */
  async function openBreaking(hooks: readonly Hook[]) {
    let unlock = () => {}
    const process = await open(hooks, async key => {
      if (key === 'broken.png') throw new Error('no luck')
      unlock = lockDatabase()
    })
    return { ...process, unlock: () => unlock() }
  }

  it('after everything was delivered: it is pending, known to the log, and finished once it is cured', async () => {
    const { hook, runs } = makeHook('hook')
    const here = await openBreaking([hook])
    const first = await pending(upload(here))
    expect(first.problem).toMatch(/^Could not save the history: .* locked /)
    const stored = [{ key: 'a.png', url: 'https://x.example/a.png' }]
    expect(here.warnings).toMatchObject([{ details: { finalizationId: first.id, stored } }])
    expect(await pending(retry(here, first.id))).toEqual(first)
    expect(await runs()).toBe(0)
    here.unlock()
    const retries = await Promise.all([1, 2, 3].map(() => retry(here, first.id)))
    expect(retries).toMatchObject(Array(3).fill({ state: 'done', files: [{ key: 'a.png' }] }))
    expect(await runs()).toBe(1)
    expect(await here.database.read(db => findFiles(db, { limit: 10 }))).toHaveLength(1)
  })

  it('after everything was delivered: a repetition of the request is pending as well, and answered once it is cured', async () => {
    const here = await openBreaking([])
    const send = () => here.send({ 'a.png': 'one' }, { idempotency: { key: 'k', fingerprint: 'f' } })
    const first = await pending(send())
    expect(await pending(send())).toEqual(first)
    here.unlock()
    expect(await send()).toMatchObject({ isRepeated: true, outcomes: [{ ok: true }] })
  })

  it('after one of two files was stored: the response says so, and it is saved once it is cured', async () => {
    const here = await openBreaking([])
    const { outcomes } = await here.send({ 'a.png': 'one', 'broken.png': 'two' })
    expect(outcomes.map(({ ok }) => ok)).toEqual([true, false])
    here.unlock()
    await here.finalizer.saveKept()
    expect(await here.database.read(db => findFiles(db, { limit: 9 }))).toMatchObject([{ key: 'a.png' }])
  })
})

describe('two processes of one database', () => {
  it('each skip what the other has done, also when the upload changed hands meanwhile', async () => {
    const [first, second] = [makeHook('first'), makeHook('second')]
    const hooks = [first.hook, second.hook]
    const [here, there] = [await open(hooks), await open(hooks)]
    const id = await uploadPending(here, first)
    await second.is('broken')
    // Each of them may be the one that fails at the second hook.
    const outcomes = await Promise.all([here, there].map(one => pending(retry(one, id))))
    expect(outcomes.map(({ problem }) => problem)).toEqual(Array(2).fill('Hook "second" failed: exit code 1'))
    expect(await first.runs()).toBe(2)
    await second.isNot('broken')
    await retry(there, id)
    expect(await first.runs()).toBe(2)
  })

  it('wait for each other, until the client leaves', async () => {
    const { hook, is, isNot, runs } = makeHook('hook')
    const [here, there] = [await open([hook]), await open([hook])]
    await is('slow')
    const completed = upload(here)
    await expect.poll(runs).toBe(1)
    const [row] = await here.database.read(db => db.all<{ id: string }>(sql`select id from uploads`))
    const id = String(row?.id)
    const leave = new AbortController()
    const waiting = there.finalizer.retry(id, undefined, leave.signal)
    await sleep(50)
    leave.abort(new Error('the client left'))
    await expect(waiting).rejects.toThrow('the client left')
    await isNot('slow')
    await completed
    expect(await retry(there, id)).toMatchObject({ state: 'done' })
    expect(await runs()).toBe(1)
  })
})

describe('a hook that fails', () => {
  it.each([
    [0, 5000],
    [3, 40_000],
    [30, LONGEST_PAUSE_MS],
  ])('at attempt %i is put off for %i ms, with what was done before it', async (attempts, pauseMs) => {
    const [good, bad] = [makeHook('good'), makeHook('bad')]
    const here = await open([good.hook, bad.hook])
    await bad.is('broken')
    const { id } = await pending(upload(here))
    const before = { state: 'stored', steps: ['hook:good'], attempts } as const
    await advance(here.database, id, here.owner.id, { ...before, pauseMs: 0 })
    const due = () =>
      here.database.read(async db => {
        const [row] = await db.all<{ due_at: number }>(sql`select due_at from uploads`)
        return { at: row?.due_at ?? 0, now: await db.now() }
      })
    const { now: begun } = await due()
    await pending(retry(here, id))
    const { at, now: ended } = await due()
    expect(at).toBeGreaterThanOrEqual(begun + pauseMs)
    expect(at).toBeLessThanOrEqual(ended + pauseMs)
    expect(await read(here, id)).toMatchObject({ ...before, attempts: attempts + 1 })
    expect(await good.runs()).toBe(1)
  })

  it('since the process ends is no attempt, so that the next start runs it first of all', async () => {
    const { hook, is, runs } = makeHook('hook')
    const here = await open([hook])
    await is('slow')
    const uploaded = pending(upload(here))
    await expect.poll(runs).toBe(1)
    here.ending.abort(new Error('the end'))
    const { id, problem } = await uploaded
    expect(problem).toContain('the end')
    expect(await read(here, id)).toMatchObject({ state: 'stored', attempts: 0, owner: '' })
  })

  it('and was taken out of the configuration keeps nothing pending', async () => {
    const hook = makeHook('hook')
    const id = await uploadPending(await open([hook.hook]), hook)
    expect(await retry(await open([]), id)).toMatchObject({ state: 'done' })
  })
})

it('after a reload, pending uploads are finished by the new hooks, what began before by its own', async () => {
  const [first, second] = [makeHook('first'), makeHook('second')]
  let isReloaded = false
  const here: TestProcess = await open([first.hook], async () => {
    if (isReloaded) here.finalizer.adopt([second.hook], upload => upload)
  })
  const id = await uploadPending(here, first)
  isReloaded = true
  await upload(here)
  expect([await first.runs(), await second.runs()]).toEqual([2, 0])
  await retry(here, id)
  expect([await first.runs(), await second.runs()]).toEqual([2, 1])
})

describe('a hook that is not required', () => {
  it('one silent chat server turned every upload into 424: it fails, is tried again, and keeps nothing pending', async () => {
    const [chat, other] = [makeHook('chat'), makeHook('other')]
    await chat.is('broken')
    const here = await open([{ ...chat.hook, required: false }, other.hook])
    await upload(here)
    expect([await chat.runs(), await other.runs()]).toEqual([1, 1])
    const [row] = await here.database.read(db =>
      db.all<{ id: string; state: string }>(sql`select * from uploads`),
    )
    expect(row?.state).toBe('stored')
    const id = String(row?.id)
    expect(await retry(here, id)).toMatchObject({ state: 'done' })
    await chat.isNot('broken')
    await retry(here, id)
    expect((await read(here, id))?.state).toBe('done')
    expect([await chat.runs(), await other.runs()]).toEqual([3, 1])
  })

  it('is given up after 8 attempts, and the log says so', async () => {
    const chat = makeHook('chat')
    await chat.is('broken')
    const here = await open([{ ...chat.hook, required: false }])
    await upload(here)
    const [row] = await here.database.read(db => db.all<{ id: string }>(sql`select id from uploads`))
    const id = String(row?.id)
    for (let n = 0; n < 10; n++) await retry(here, id)
    expect(await chat.runs()).toBe(8)
    expect((await read(here, id))?.state).toBe('done')
    expect(here.warnings.at(-1)?.message).toContain('The hook is not required and is not retried again.')
  })
})
