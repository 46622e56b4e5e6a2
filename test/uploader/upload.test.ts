import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createNamedSlots } from '../../src/flow/slots.ts'
import type { Database } from '../../src/store/database.ts'
import { sql } from '../../src/store/sql.ts'
import { readUpload } from '../../src/store/upload-rows.ts'
import { keysOf, makeBucket, openProcess } from '../helpers/uploader.ts'

const KEYED = { idempotency: { key: 'k', fingerprint: 'print' } }
const UNIQUE = { keyTemplate: '{uuid}{extname}' }

describe('requests with the same key at once', () => {
  it('go on when the client of one that waits leaves, in every process', async () => {
    const bucket = makeBucket()
    const here = await openProcess({ bucket })
    const there = await openProcess({ bucket }, {}, here.directory)
    bucket.hold()
    const first = here.send({ 'a.txt': 'one' }, KEYED)
    await expect.poll(() => bucket.puts).toHaveLength(1)
    const leave = new AbortController()
    const waiting = [here, there].map(one => one.send({ 'a.txt': 'one' }, { ...KEYED, signal: leave.signal }))
    const left = Promise.allSettled(waiting)
    const patient = there.send({ 'a.txt': 'one' }, KEYED)
    await sleep(50)
    leave.abort(new Error('left'))
    expect(await left).toMatchObject([{ reason: { message: 'left' } }, { reason: { message: 'left' } }])
    bucket.letGo()
    expect(await first).toMatchObject({ isRepeated: false })
    expect(await patient).toEqual({ outcomes: (await first).outcomes, isRepeated: true })
    expect(bucket.puts).toEqual(['a.txt'])
  })

  it('but of something else are refused at once', async () => {
    const bucket = makeBucket()
    const { send } = await openProcess({ bucket })
    bucket.hold()
    const first = send({ 'a.txt': 'one' }, KEYED)
    await expect.poll(() => bucket.puts).toHaveLength(1)
    const other = send({ 'a.txt': 'two' }, { idempotency: { key: 'k', fingerprint: 'other' } })
    await expect(other).rejects.toMatchObject({ code: 'idempotency_key_reused' })
    bucket.letGo()
    await first
  })

  it('are tried one after the other while they fail', async () => {
    const bucket = makeBucket()
    const { send } = await openProcess({ bucket })
    bucket.next.push('refused', 'refused')
    const all = await Promise.all([1, 2, 3, 4].map(() => send({ 'a.txt': 'one' }, KEYED)))
    const failures = all.filter(({ outcomes: [one] }) => !one?.ok)
    expect(failures).toHaveLength(2)
    expect(all.filter(({ isRepeated }) => isRepeated)).toHaveLength(1)
    expect(bucket.puts).toHaveLength(3)
  })
})

it('a repetition after a failure made another object key, since the clock had been set', async () => {
  const bucket = makeBucket()
  const { send, database } = await openProcess({ bucket: { ...bucket, common: UNIQUE } })
  bucket.next.push('refused')
  await send({ 'a.txt': 'one' }, KEYED)
  await database.tx(db => db.run(sql`update requests set created_at = created_at - 3600000`))
  const again = await send({ 'a.txt': 'one' }, KEYED)
  expect(bucket.puts).toEqual([keysOf(again)[0], keysOf(again)[0]])
})

it('an upload whose beginning got no answer from the database fails, and its repetition is not stuck', async () => {
  const bucket = makeBucket()
  const { database, directory } = await openProcess({ bucket })
  let isLost = false
  const losing: Database = {
    ...database,
    async tx(work) {
      const result = await database.tx(work)
      if (isLost) return result
      isLost = typeof result === 'object' && result !== null && 'is' in result && result.is === 'begun'
      if (isLost) throw new Error('the answer is lost')
      return result
    },
  }
  const { send, finalizer } = await openProcess({ bucket }, { database: losing }, directory)
  await expect(send({ 'a.txt': 'one' }, KEYED)).rejects.toThrow('the answer is lost')
  await finalizer.saveKept()
  expect(await database.read(db => db.all(sql`select state from uploads`))).toEqual([{ state: 'failed' }])
  expect(keysOf(await send({ 'a.txt': 'one' }, KEYED))).toEqual(['a.txt'])
})

it('a put had arrived and its response was an error: there was a second object', async () => {
  const bucket = makeBucket()
  const { send } = await openProcess({ bucket }, { limits: { timeoutMs: 10_000, retries: 2 } })
  bucket.next.push('lost')
  expect(keysOf(await send({ 'a.txt': 'one' }))).toEqual(['a.txt'])
  expect([...bucket.objects]).toEqual([['a.txt', 'one']])
})

it.each([
  ['refused', ['a.txt', 'a-2.txt']],
  ['lost', ['a.txt', 'a-2.txt']],
] as const)('a repetition overwrote what came between it and the failed attempt (%s)', async (fate, keys) => {
  const bucket = makeBucket()
  const { send, background } = await openProcess({ bucket })
  bucket.next.push(fate)
  await send({ 'a.txt': 'one' }, KEYED)
  await background.idle()
  await send({ 'a.txt': 'two' })
  await send({ 'a.txt': 'one' }, KEYED)
  expect([...bucket.objects.keys()].sort()).toEqual([...keys].sort())
  expect([...bucket.objects.values()].sort()).toEqual(['one', 'two'])
})

it('a client that left before anything was sent uploads nothing', async () => {
  const bucket = makeBucket()
  const { send, database } = await openProcess({ bucket })
  await expect(send({ 'a.txt': 'one' }, { signal: AbortSignal.abort(new Error('gone')) })).rejects.toThrow(
    'gone',
  )
  expect(bucket.puts).toEqual([])
  expect(await database.read(db => db.all(sql`select name from objects`))).toEqual([])
})

it('a client that left while the destination was asked uploads nothing, not to the fallback either', async () => {
  const [bucket, other] = [makeBucket(), makeBucket()]
  const leave = new AbortController()
  const exists = async () => {
    leave.abort(new Error('gone'))
    return false
  }
  const asked = { target: { ...bucket.target, exists }, common: { fallback: 'test/other' } }
  const { send } = await openProcess({ asked, other })
  await expect(send({ 'a.txt': 'one' }, { signal: leave.signal })).rejects.toThrow('gone')
  expect([...bucket.puts, ...other.puts]).toEqual([])
})

describe('an upload', () => {
  it('has a UUID of version 7, in the order of time, and never given twice', async () => {
    const bucket = makeBucket()
    const { send, database } = await openProcess({ bucket })
    for (let n = 0; n < 20; n++) await send({ 'a.txt': 'one' })
    const rows = await database.read(db =>
      db.all<{ id: string }>(sql`select id from uploads order by created_at`),
    )
    const ids = rows.map(({ id }) => id)
    for (const id of ids)
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(new Set(ids).size).toBe(20)
    const times = ids.map(id => id.slice(0, 13))
    expect(times).toEqual([...times].sort())
  })

  it('keeps what names a file, not the bytes of a data: address', async () => {
    const bucket = makeBucket()
    const { send, database } = await openProcess({ bucket })
    const origin = `data:image/png;base64,${'A'.repeat(1000)}`
    const { outcomes } = await send({ [origin]: 'one' })
    expect(outcomes[0]?.origin).toBe(origin)
    const [row] = await database.read(db => db.all<{ id: string }>(sql`select id from uploads`))
    const upload = await database.read(db => readUpload(db, String(row?.id)))
    expect(upload?.origins[0]).toMatch(/^data:image\/png;base64,A+…$/)
    expect(upload?.files[0]?.origin).toBe(upload?.origins[0])
  })
})

describe('no object stays claimed', () => {
  const claimed = (database: Database) =>
    database.read(db => db.all(sql`select key, state from objects where holder is not null`))

  it('for a file of which nothing was sent when the client left', async () => {
    const bucket = makeBucket()
    const { send, database } = await openProcess({ bucket })
    bucket.hold()
    const leave = new AbortController()
    const names = Array.from({ length: 6 }, (_, n) => `${n}.txt`)
    const sending = send(Object.fromEntries(names.map(name => [name, name])), { signal: leave.signal })
    await expect.poll(() => bucket.puts).toHaveLength(4)
    leave.abort(new Error('the client left'))
    bucket.letGo()
    await sending
    await expect.poll(() => claimed(database)).toEqual([])
  })

  it('for a copy whose mirror has no free slot', async () => {
    const [bucket, mirror] = [makeBucket(), makeBucket()]
    const common = { mirrors: [{ destination: 'test/mirror', required: false }] }
    const slots = createNamedSlots(1, 0)
    const { send, database } = await openProcess({ bucket: { ...bucket, common }, mirror }, { slots })
    void slots.of('test/mirror').run(() => new Promise(() => {}), new AbortController().signal)
    expect((await send({ 'a.txt': 'one' })).outcomes).toMatchObject([{ ok: true }])
    await expect.poll(() => claimed(database)).toEqual([])
  })

  it('for a copy that was stored before its destination failed', async () => {
    const [bucket, mirror] = [makeBucket(), makeBucket()]
    const common = { mirrors: [{ destination: 'test/mirror', required: false }] }
    const { send, database } = await openProcess({ bucket: { ...bucket, common }, mirror })
    bucket.hold()
    bucket.next.push('refused')
    const sending = send({ 'a.txt': 'one' })
    await expect.poll(() => [...mirror.objects]).toHaveLength(1)
    bucket.letGo()
    expect((await sending).outcomes).toMatchObject([{ ok: false }])
    await expect.poll(() => claimed(database)).toEqual([])
  })
})
