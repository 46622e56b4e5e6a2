import { describe, expect, it } from 'vitest'
import { UploadError } from '../../src/errors.ts'
import type { QuotaRule } from '../../src/store/quota-contract.ts'
import { createQuotas } from '../../src/uploader/quota.ts'
import { eventually } from '../helpers/eventually.ts'
import { FINISHED, newEntry, newJob, storeEngines } from '../helpers/stores.ts'

const codeOf = (error: unknown) => (error instanceof UploadError ? error.code : error)

const DAY_MS = 24 * 60 * 60_000
const rule = (limits: Partial<QuotaRule>): QuotaRule => ({
  client: 'ci',
  group: 'ci',
  windowMs: DAY_MS,
  ...limits,
})
const request = (bytes: number, ...rules: QuotaRule[]) => ({ rules, bytes })

describe.each(storeEngines())('the quotas of a store in %s', (_name, make) => {
  it('grant what fits, in order, and nothing beyond', async context => {
    const store = (await make(context)).open()
    const one = rule({ files: 3, bytes: 100 })
    const replies = await store.reserveQuota(
      'me',
      [60, 50, 40, 1].map(bytes => request(bytes, one)),
    )
    expect(replies.map(({ isGranted }) => isGranted)).toEqual([true, false, true, false])
    expect(replies[3]?.windows).toMatchObject([{ files: 2, bytes: 100 }])
    expect(await store.quotaWindows([one])).toMatchObject([{ rule: one, files: 2, bytes: 100 }])
  })

  it('are never exceeded by several servers at once, and nothing that fits is refused', async context => {
    const place = await make(context)
    const stores = [place.open(), place.open(), place.open()]
    const one = rule({ files: 100 })
    const replies = await Promise.all(
      Array.from({ length: 60 }, (_, n) =>
        stores[n % 3]!.reserveQuota(`p${n % 3}`, [request(1, one), request(1, one)]),
      ),
    )
    expect(replies.flat().filter(({ isGranted }) => isGranted)).toHaveLength(100)
    expect(await stores[0]!.quotaWindows([one])).toMatchObject([{ files: 100, bytes: 100 }])
  })

  it('of a key and of a person both count, or none does', async context => {
    const store = (await make(context)).open()
    const key = rule({ files: 2 })
    const [alice, bob] = ['alice', 'bob'].map(name => rule({ client: `proxy: ${name}`, files: 1 }))
    const ask = async (person: QuotaRule) =>
      (await store.reserveQuota('me', [request(1, key, person)]))[0]?.isGranted
    expect([await ask(alice!), await ask(alice!), await ask(bob!), await ask(bob!)]).toEqual([
      true,
      false,
      true,
      false,
    ])
    expect(await store.quotaWindows([key, alice!, bob!])).toMatchObject([
      { files: 2 },
      { files: 1 },
      { files: 1 },
    ])
  })

  it('take what a delivery has used, and give back the rest', async context => {
    const store = (await make(context)).open()
    const one = rule({ files: 3, bytes: 100 })
    const job = newJob({ owner: 'me' })
    await store.begin(job)
    const [reply] = await store.reserveQuota('me', [request(60, one), request(40, one)])
    const { startsAt } = reply!.windows[0]!
    const use = { client: 'ci', windowMs: DAY_MS, startsAt, reservedFiles: 2, reservedBytes: 100 }
    const quota = [{ ...use, usedFiles: 1, usedBytes: 60 }]
    await store.deliver(job.id, { ...FINISHED, owner: 'me', history: [newEntry(job)], quota })
    expect(await store.quotaWindows([one])).toMatchObject([{ files: 1, bytes: 60 }])
    expect(await store.quotaRows()).toEqual([
      { client: 'ci', windowMs: DAY_MS, startsAt, files: 1, bytes: 60 },
    ])
  })

  it('get back what a process had reserved that has ended, and keep what it has used', async context => {
    const store = (await make(context)).open()
    const one = rule({ files: 3 })
    const [reply] = await store.reserveQuota('gone', [request(1, one), request(1, one), request(1, one)])
    const job = newJob({ owner: 'gone' })
    await store.begin(job)
    const { startsAt } = reply!.windows[0]!
    const use = { client: 'ci', windowMs: DAY_MS, startsAt, reservedFiles: 1, reservedBytes: 1 }
    await store.deliver(job.id, {
      ...FINISHED,
      owner: 'gone',
      quota: [{ ...use, usedFiles: 1, usedBytes: 1 }],
    })
    await store.abandon('gone', () => {})
    expect(await store.quotaWindows([one])).toMatchObject([{ files: 1, bytes: 1 }])
    // It lives after all, and delivers late.
    await store.deliver(job.id, {
      ...FINISHED,
      owner: 'gone',
      quota: [{ ...use, usedFiles: 1, usedBytes: 1 }],
    })
    expect(await store.quotaWindows([one])).toMatchObject([{ files: 2, bytes: 2 }])
  })

  it('begin anew with each window, and forget the windows that have ended', async context => {
    const store = (await make(context)).open()
    const short = rule({ windowMs: 200, files: 1 })
    const long = rule({ files: 9 })
    const starts = new Set<number>()
    for (let granted = 0; granted < 3; ) {
      const [reply] = await store.reserveQuota('me', [request(1, short, long)])
      if (!reply?.isGranted) continue
      granted++
      starts.add(reply.windows[0]!.startsAt)
    }
    expect(starts.size).toBe(3)
    expect([...starts].every(start => start % 200 === 0)).toBe(true)
    await new Promise(resolve => setTimeout(resolve, 250))
    expect(await store.quotaRows()).toMatchObject([{ windowMs: DAY_MS, files: 3 }])
    await store.pruneQuotas()
    expect(await store.quotaRows()).toHaveLength(1)
  })

  it('lend a slice to a process, and get back what it does not use before another one is refused', async context => {
    const place = await make(context)
    const quotas = [createQuotas(place.open(), 'p0'), createQuotas(place.open(), 'p1')]
    const shares = quotas.map(one => one.begin([rule({ files: 100, bytes: 1000 })])!)
    const take = (n: number, bytes: number) => shares[n]!.take(bytes, 'a.txt').then(() => true, codeOf)
    expect(await take(0, 10)).toBe(true)
    const granted = await Promise.all(Array.from({ length: 60 }, () => take(1, 10)))
    expect(granted.every(one => one === true)).toBe(true)
    expect(await take(1, 390)).toBe(true) // needs all that the first one has not used
    expect(await take(1, 1)).toBe('quota_exceeded')
    expect(await take(0, 1)).toBe('quota_exceeded')
    await Promise.all(quotas.map(one => one.close()))
  })

  it('say that a process still has to answer, or grant what it returned at that instant', async context => {
    const place = await make(context)
    const [mine, others] = [place.open(), place.open()]
    for (let n = 0; n < 60; n++) {
      const one = rule({ client: `ci ${n}`, bytes: 1000 })
      const [lent] = await others.reserveQuota('other', [request(10, one)], { returned: [] })
      expect(lent?.slices).toHaveLength(1)
      const ask = async (isRecall: boolean) =>
        (await mine.reserveQuota('me', [{ ...request(990, one), isRecall }], { returned: [] }))[0]
      expect(await ask(true)).toMatchObject({ isGranted: false, isRecalling: true })
      const [reply] = await Promise.all([ask(false), others.returnQuota('other', lent?.slices ?? [])])
      expect(reply?.isGranted || reply?.isRecalling).toBe(true)
    }
  })

  it.for<['reserveQuota' | 'returnQuota', number]>([
    ['reserveQuota', 1],
    ['returnQuota', 0],
  ])('lose no room when the database fails for a moment, at %s', async ([method, left], context) => {
    const store = (await make(context)).open()
    let failures = 0
    const failing = {
      ...store,
      [method]: async (...args: never[]) => {
        if (failures-- > 0) throw new Error('the connection was lost')
        return (store[method] as (...args: never[]) => unknown)(...args)
      },
    }
    const quotas = createQuotas(failing, 'me')
    const one = rule({ files: 64, bytes: 1e6 })
    const share = quotas.begin([one])!
    const giveBack = await share.take(1, 'a.txt') // which also brings a slice of 3 files
    failures = 2
    if (method === 'returnQuota') giveBack()
    else expect(await share.take(5e5, 'b.txt').catch(String)).toContain('the connection was lost')
    await eventually(async () => expect(await store.quotaWindows([one])).toMatchObject([{ files: left }]))
    await quotas.close()
  })

  it('give the room of a file back that was not stored, while its upload goes on', async context => {
    const quotas = createQuotas((await make(context)).open(), 'me')
    const share = quotas.begin([rule({ files: 1 })])!
    const giveBack = await share.take(1, 'a.txt')
    expect(await share.take(1, 'b.txt').catch(codeOf)).toBe('quota_exceeded')
    giveBack()
    await eventually(async () => expect(await share.take(1, 'b.txt').catch(codeOf)).toBeTypeOf('function'))
    await quotas.close()
  })
})
