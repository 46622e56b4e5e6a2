import { describe, expect, it } from 'vitest'
import { FINISHED, newEntry, newFile, newJob, storeEngines } from '../helpers/stores.ts'

describe.each(storeEngines())('the jobs of a store in %s', (_name, make) => {
  it('keeps a job as it was written', async context => {
    const store = (await make(context)).open()
    const job = newJob()
    await store.begin(job)
    expect(await store.job(job.id)).toEqual({
      ...job,
      state: 'uploading',
      files: [],
      steps: [],
      attempts: 0,
      problem: undefined,
    })
    expect(await store.job('other')).toBeUndefined()
  })

  it('keeps what became of the mirrors of a finished job', async context => {
    const store = (await make(context)).open()
    const job = newJob()
    await store.begin(job)
    const files = [newFile({ mirrors: [{ destination: 'local/mirror', error: 'it is down' }] })]
    await store.deliver(job.id, { ...FINISHED, files, history: [newEntry(job)] })
    expect((await store.job(job.id))?.files).toEqual(JSON.parse(JSON.stringify(files)))
  })

  it('survives being closed and opened', async context => {
    const place = await make(context)
    const first = place.open()
    const job = newJob()
    await first.begin(job)
    await first.close()
    expect(await place.open().job(job.id)).toMatchObject({ id: job.id, origins: job.origins })
  })

  it('gives a delivered job to one of many who claim it at once', async context => {
    const place = await make(context)
    const stores = Array.from({ length: 4 }, () => place.open())
    const job = newJob()
    await stores[0]!.begin(job)
    await stores[0]!.deliver(job.id, { ...FINISHED, state: 'delivered' })
    const claims = await Promise.all(
      stores.flatMap((store, n) => [1, 2, 3].map(m => store.claim(job.id, `${n}.${m}`))),
    )
    const [claimed] = claims.filter(claim => claim !== undefined)
    expect(claims.filter(claim => claim !== undefined)).toHaveLength(1)
    expect(await stores[1]!.job(job.id)).toEqual(claimed)
    expect(claimed).toMatchObject({ id: job.id, state: 'finalizing', steps: ['history'] })
  })

  it('takes a job away only from the one that is named', async context => {
    const store = (await make(context)).open()
    const job = newJob()
    await store.begin(job)
    await store.deliver(job.id, { ...FINISHED, state: 'finalizing' })
    expect(await store.claim(job.id, 'second')).toBeUndefined()
    expect(await store.claim(job.id, 'second', 'third')).toBeUndefined()
    expect(await store.claim(job.id, 'second', 'me')).toMatchObject({ owner: 'second' })
    expect(await store.claim(job.id, 'second')).toMatchObject({ owner: 'second' })
  })

  it('remembers finished steps, postponed attempts and the end', async context => {
    const store = (await make(context)).open()
    const job = newJob()
    await store.begin(job)
    await store.deliver(job.id, { ...FINISHED, state: 'delivered' })
    await store.claim(job.id, 'me')
    const steps = ['history', 'hook:a']
    const progress = { steps, attempts: 1, now: 1500 }
    expect(await store.advance(job.id, 'me', { ...progress, state: 'finalizing' })).toBe(true)
    expect(await store.job(job.id)).toMatchObject({ state: 'finalizing', steps })
    const postponed = { ...progress, state: 'delivered', problem: 'b failed', pauseMs: 500 } as const
    expect(await store.advance(job.id, 'me', postponed)).toBe(true)
    const expected = { state: 'delivered', steps, attempts: 1, problem: 'b failed' }
    expect(await store.job(job.id)).toMatchObject(expected)
    expect(await store.due(1999, 10, 5000)).toHaveLength(0)
    expect(await store.due(2000, 10, 5000)).toHaveLength(1)
    expect(await store.pending()).toHaveLength(1)
    expect(await store.claim(job.id, 'me')).toMatchObject({ steps, attempts: 1 })
    expect(await store.advance(job.id, 'me', { ...progress, state: 'finished' })).toBe(true)
    expect(await store.job(job.id)).toMatchObject({ state: 'finished', problem: undefined })
    expect(await store.pending()).toHaveLength(0)
  })

  it('takes no word from a process whose job somebody else has taken over', async context => {
    const store = (await make(context)).open()
    const job = newJob()
    await store.begin(job)
    await store.deliver(job.id, { ...FINISHED, state: 'finalizing' })
    await store.claim(job.id, 'other', 'me')
    const progress = { state: 'delivered', steps: ['history'], attempts: 1, now: 1 } as const
    expect(await store.advance(job.id, 'me', progress)).toBe(false)
    await store.deliver(job.id, { ...FINISHED, state: 'delivered' })
    expect(await store.job(job.id)).toMatchObject({ state: 'finalizing', owner: 'other' })
    await store.advance(job.id, 'other', { ...progress, state: 'finished' })
    await store.deliver(job.id, { ...FINISHED, state: 'delivered', history: [newEntry(job)] })
    expect(await store.job(job.id)).toMatchObject({ state: 'finished' })
    expect(await store.history({ limit: 10 })).toHaveLength(1)
  })

  it('believes a delivery of a process that was thought gone', async context => {
    const store = (await make(context)).open()
    const job = newJob()
    await store.begin(job)
    await store.abandon('me', () => {})
    expect(await store.job(job.id)).toMatchObject({ state: 'interrupted' })
    await store.deliver(job.id, { ...FINISHED, files: [newFile()] })
    expect(await store.job(job.id)).toMatchObject({ state: 'finished', files: [{ index: 0 }] })
  })

  it('cleans up after a process that is gone, and leaves the others alone', async context => {
    const store = (await make(context)).open()
    const [uploading, finalizing, foreign] = [
      newJob({ owner: 'gone' }),
      newJob({ owner: 'gone' }),
      newJob({ owner: 'alive' }),
    ]
    for (const job of [uploading, finalizing, foreign]) await store.begin(job)
    await store.deliver(finalizing.id, { ...FINISHED, state: 'finalizing' })
    await store.beat('alive', 77)
    expect([...(await store.owners())].sort()).toEqual([
      ['alive', 77],
      ['gone', uploading.createdAt],
    ])
    const reported: string[] = []
    await store.abandon('gone', job => void reported.push(job.id))
    expect(reported).toEqual([uploading.id])
    expect(await store.job(uploading.id)).toMatchObject({ state: 'interrupted' })
    expect(await store.job(finalizing.id)).toMatchObject({ state: 'delivered' })
    expect(await store.job(foreign.id)).toMatchObject({ state: 'uploading' })
    await store.removeOwner('alive')
    expect((await store.owners()).get('alive')).toBe(foreign.createdAt)
  })

  it('begins a job while a transaction is under way, and neither becomes a part of the other', async context => {
    const place = await make(context)
    const [other, store] = [place.open(), place.open()]
    const [interrupted, job, foreign] = [newJob({ owner: 'gone' }), newJob(), newJob()]
    await other.begin(interrupted)
    let begun = Promise.resolve()
    await store.abandon('gone', () => {
      begun = store.begin(job)
    })
    await begun
    expect(await store.job(interrupted.id)).toMatchObject({ state: 'interrupted' })
    expect(await store.job(job.id)).toMatchObject({ state: 'uploading' })
    const failing = store.abandon('me', () => {
      begun = store.begin(foreign)
      throw new Error('of no use')
    })
    await expect(failing).rejects.toThrow('of no use')
    await begun
    expect(await store.job(job.id)).toMatchObject({ state: 'uploading' })
    expect(await store.job(foreign.id)).toMatchObject({ state: 'uploading' })
  })

  it('can be opened by several at the same time for the first time', async context => {
    const place = await make(context)
    const stores = Array.from({ length: 6 }, () => place.open())
    await Promise.all(stores.map(store => store.begin(newJob())))
    expect((await stores[0]!.owners()).size).toBe(1)
  })
})
