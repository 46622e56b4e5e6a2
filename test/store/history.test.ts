import { describe, expect, it } from 'vitest'
import { FINISHED, newEntry, newFile, newJob, reserve, storeEngines } from '../helpers/stores.ts'

describe.each(storeEngines())('the history of a store in %s', (_name, make) => {
  it('keeps what was delivered together with its history', async context => {
    const store = (await make(context)).open()
    const job = newJob()
    await store.begin(job)
    const files = [
      newFile(),
      newFile({ index: 1, origin: '中文 😀.png', deleteUrl: 'http://x.example/delete' }),
    ]
    const history = files.map(file => newEntry(job, file))
    await store.deliver(job.id, { ...FINISHED, files, history })
    expect(await store.job(job.id)).toMatchObject({ state: 'finished', steps: ['history'] })
    expect((await store.job(job.id))?.files).toHaveLength(2)
    const found = await store.history({ limit: 10 })
    expect(found.sort((a, b) => a.index - b.index)).toEqual(history)
  })

  it('reads the files of a finished job from its history, and forgets them together', async context => {
    const store = (await make(context)).open()
    const job = newJob()
    await store.begin(job)
    const files = [newFile({ origin: 'a.png' }), newFile({ index: 1, destination: 'local/fallback' })]
    const history = files.map(({ destination = job.destination, ...file }) =>
      newEntry(job, { ...file, destination }),
    )
    await store.deliver(job.id, { ...FINISHED, files, history })
    expect((await store.job(job.id))?.files).toEqual(files)
    await store.pruneHistory(job.createdAt + 1)
    expect(await store.job(job.id)).toBeUndefined()
  })

  it('takes a delivery again without doubling its history', async context => {
    const store = (await make(context)).open()
    const job = newJob()
    await store.begin(job)
    await store.begin(job)
    const delivery = { ...FINISHED, history: [newEntry(job)] }
    await store.deliver(job.id, delivery)
    await store.deliver(job.id, delivery)
    expect(await store.history({ limit: 10 })).toHaveLength(1)
  })

  it('finds history by destination, text, hash and time, newest first', async context => {
    const store = (await make(context)).open()
    const job = newJob()
    const entries = [
      newEntry(job, { index: 0, time: 10, destination: 'local/blog', origin: 'cat.png' }),
      newEntry(job, { index: 1, time: 30, destination: 'local/blogger', key: 'x/100%_cat.png', origin: 'b' }),
      newEntry(job, {
        index: 2,
        time: 20,
        destination: 's3/blog',
        sha256: 'b'.repeat(64),
        origin: 'dog.png',
      }),
    ]
    await store.deliver(job.id, { ...FINISHED, history: entries })
    const find = async (filter: object) =>
      (await store.history({ limit: 10, ...filter })).map(entry => entry.index)
    expect(await find({})).toEqual([1, 2, 0])
    expect(await find({ limit: 2 })).toEqual([1, 2])
    expect(await find({ destination: 'local' })).toEqual([1, 0])
    expect(await find({ destination: 'local/blog' })).toEqual([0])
    expect(await find({ text: 'cat' })).toEqual([1, 0])
    expect(await find({ text: '100%_cat' })).toEqual([1])
    expect(await find({ text: 'CAT' })).toEqual([1, 0])
    expect(await find({ text: '%' })).toEqual([1])
    expect(await find({ text: '1_0' })).toEqual([])
    expect(await find({ text: '\\' })).toEqual([])
    expect(await find({ text: 'Ä' })).toEqual([])
    expect(await find({ sha256: 'b'.repeat(64) })).toEqual([2])
    expect(await find({ since: 20 })).toEqual([1, 2])
    const same = { sha256: 'a'.repeat(64), isRemoved: false }
    expect(await find({ ...same, among: ['local/blog'] })).toEqual([0])
    expect(await find({ ...same, among: ['s3/blog'] })).toEqual([])
    expect(await store.pruneHistory(20, undefined, [], new URL(entries[0]!.url).pathname)).toBe(0)
    expect(await store.pruneHistory(20)).toBe(1)
    expect(await find({})).toEqual([1, 2])
  })

  it('forgets old jobs that are over, and no others', async context => {
    const store = (await make(context)).open()
    const [old, open, young] = [
      newJob({ createdAt: 1 }),
      newJob({ createdAt: 1 }),
      newJob({ createdAt: 100 }),
    ]
    for (const job of [old, open, young]) await store.begin(job)
    await store.deliver(old.id, FINISHED)
    await store.deliver(open.id, { ...FINISHED, state: 'delivered' })
    await store.deliver(young.id, { ...FINISHED, now: 100 })
    await store.pruneJobs(50)
    expect(await store.job(old.id)).toBeUndefined()
    expect(await store.job(open.id)).toBeDefined()
    expect(await store.job(young.id)).toBeDefined()
  })

  it('forgets what is old a part at a time, and all of it', async context => {
    const store = (await make(context)).open()
    const jobs = Array.from({ length: 300 }, () => newJob({ createdAt: 0 }))
    // With one under way the others are written together, and need no connection each.
    await store.begin(jobs[0]!)
    await Promise.all(jobs.slice(1).map(job => store.begin(job)))
    await Promise.all(
      jobs.map((job, n) => {
        const history = [newEntry(job, { time: n % 2 })]
        return store.deliver(job.id, { ...FINISHED, history, now: n % 2 })
      }),
    )
    for (const { id } of jobs.slice(0, 100)) await reserve(store, `k${id}`, { createdAt: 0 })
    await Promise.all([store.pruneJobs(1), store.pruneIdempotencyRecords(1)])
    expect(await store.pruneHistory(1)).toBe(150)
    const left = await store.history({ limit: 1000 })
    expect(left.map(({ time }) => time)).toEqual(Array(150).fill(1))
    const known = await Promise.all(jobs.map(({ id }) => store.job(id)))
    expect(known.map(job => job !== undefined)).toEqual(jobs.map((_, n) => n % 2 === 1))
    const keys = await Promise.all(jobs.slice(0, 100).map(({ id }) => store.idempotencyRecord(`k${id}`)))
    expect(keys.every(key => key === undefined)).toBe(true)
  })
})
