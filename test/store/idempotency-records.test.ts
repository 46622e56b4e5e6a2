import { describe, expect, it } from 'vitest'
import { IdempotencyKeyTaken, NO_OWNER } from '../../src/store/contract.ts'
import { FINISHED, newEntry, newFile, newJob, reserve, storeEngines } from '../helpers/stores.ts'

describe.each(storeEngines())('the idempotency keys of a store in %s', (_name, make) => {
  it('gives an idempotency key to one of many, and its answer to all', async context => {
    const place = await make(context)
    const stores = [place.open(), place.open()]
    const jobs = [0, 1, 0, 1].map((n, i) => ({
      store: stores[n]!,
      seed: `s${i}`,
      job: newJob({ owner: `p${i}` }),
    }))
    const taken = await Promise.allSettled(
      jobs.map(({ store, seed, job }) =>
        store.begin(job, 'k', { fingerprint: 'print', owner: job.owner, seed, createdAt: 9 }),
      ),
    )
    expect(taken.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const [i, one] of taken.entries()) {
      if (one.status === 'rejected') expect(one.reason).toBeInstanceOf(IdempotencyKeyTaken)
      expect(await stores[0]!.job(jobs[i]!.job.id)).toEqual(
        one.status === 'rejected' ? undefined : expect.objectContaining({ state: 'uploading' }),
      )
    }
    const { owner } = (await stores[0]!.idempotencyRecord('k'))!
    expect(await stores[0]!.takeOver('k', 'someone', 'p9', 'print')).toBe(false)
    expect(await stores[0]!.takeOver('k', owner, 'p9', 'print')).toBe(true)
    await stores[0]!.saveResponse('k', 'p9', { status: 200, body: '{"a":1}', jobId: 'j' })
    await stores[1]!.saveResponse('k', owner, { status: 200, body: '{"b":2}', jobId: 'late' })
    expect(await stores[1]!.idempotencyRecord('k')).toEqual({
      fingerprint: 'print',
      owner: 'p9',
      createdAt: 9,
      seed: expect.stringMatching(/^s[0-3]$/),
      jobId: 'j',
      claims: [],
      response: { status: 200, body: '{"a":1}', jobId: 'j' },
    })
    await stores[1]!.release('k', 'p9')
    expect(await stores[1]!.idempotencyRecord('k')).toBeDefined()
    expect(await stores[1]!.takeOver('k', 'p9', 'p10', 'print')).toBe(false)
    await stores[1]!.pruneIdempotencyRecords(10)
    expect(await stores[1]!.idempotencyRecord('k')).toBeUndefined()
  })

  it('gives an idempotency key without an answer back for the one who has it', async context => {
    const store = (await make(context)).open()
    await reserve(store, 'k')
    await store.release('k', 'other')
    expect(await store.idempotencyRecord('k')).toBeDefined()
    await store.release('k', 'me')
    expect(await store.idempotencyRecord('k')).toMatchObject({ owner: NO_OWNER, seed: 's', jobId: undefined })
    expect(await store.takeOver('k', NO_OWNER, 'you', 'print')).toBe(true)
  })

  it('keeps what the request of a key may have stored for the next attempt, and not for another request', async context => {
    const store = (await make(context)).open()
    const claims = [{ destination: 'local/a', key: 'a.txt', sha256: '0', time: 9 }]
    await reserve(store, 'k')
    await store.begin(newJob({ owner: 'me' }), 'k')
    await store.noteClaims('k', 'me', claims)
    await store.release('k', 'other')
    expect(await store.idempotencyRecord('k')).toMatchObject({ owner: 'me' })
    await store.release('k', 'me')
    const freed = {
      fingerprint: 'print',
      owner: NO_OWNER,
      createdAt: 9,
      seed: 's',
      jobId: undefined,
      response: undefined,
    }
    expect(await store.idempotencyRecord('k')).toEqual({ ...freed, claims })
    expect(await store.takeOver('k', NO_OWNER, 'you', 'print')).toBe(true)
    expect(await store.idempotencyRecord('k')).toEqual({ ...freed, owner: 'you', claims })
    await store.release('k', 'you')
    expect(await store.takeOver('k', NO_OWNER, 'you', 'another')).toBe(true)
    expect(await store.idempotencyRecord('k')).toEqual({
      ...freed,
      owner: 'you',
      fingerprint: 'another',
      claims: [],
    })
  })

  it('leads from an idempotency key to the job that was begun for it', async context => {
    const store = (await make(context)).open()
    const job = newJob()
    const first = await reserve(store, 'k')
    expect(await store.idempotencyRecord('k')).toMatchObject({ jobId: first })
    await store.begin(job, 'k')
    expect(await store.idempotencyRecord('k')).toMatchObject({ jobId: job.id, response: undefined })
    await store.begin(newJob({ owner: 'late' }), 'k')
    expect(await store.idempotencyRecord('k')).toMatchObject({ jobId: job.id })
  })

  it('does not give away the key of a request for which everything was stored', async context => {
    const store = (await make(context)).open()
    for (const state of ['delivered', 'finalizing', 'finished', 'failed'] as const) {
      const job = newJob({ owner: 'gone' })
      await reserve(store, state, { owner: 'gone' })
      await store.begin(job, state)
      await store.deliver(job.id, { ...FINISHED, state })
      expect(await store.takeOver(state, 'gone', 'me', 'print')).toBe(state === 'failed')
    }
    const begun = newJob({ owner: 'gone' })
    await reserve(store, 'begun', { owner: 'gone' })
    await store.begin(begun, 'begun')
    expect(await store.takeOver('begun', 'gone', 'me', 'print')).toBe(true)
    expect(await store.job(begun.id)).toMatchObject({ state: 'uploading', owner: begun.owner })
  })

  it('gives away the key of a request whose job is forgotten with its history', async context => {
    const store = (await make(context)).open()
    const job = newJob({ owner: 'gone' })
    await reserve(store, 'k', { owner: 'gone' })
    await store.begin(job, 'k')
    await store.deliver(job.id, { ...FINISHED, files: [newFile()], history: [newEntry(job)] })
    expect(await store.takeOver('k', 'gone', 'me', 'print')).toBe(false)
    await store.pruneHistory(Number.MAX_SAFE_INTEGER)
    expect(await store.takeOver('k', 'gone', 'me', 'print')).toBe(true)
  })
})
