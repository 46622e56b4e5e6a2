import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { UploadError } from '../../src/errors.ts'
import { Problem } from '../../src/problem.ts'
import type { Stored, Target, UploadObject } from '../../src/providers/contract.ts'
import { findFiles } from '../../src/store/history.ts'
import { currentQuotas } from '../../src/store/quotas.ts'
import { sql } from '../../src/store/sql.ts'
import type { Uploaded } from '../../src/uploader/upload.ts'
import { bytesOf } from '../helpers/provider-contract.ts'
import { CALLER, keysOf, openProcess } from '../helpers/uploader.ts'

/** A process whose destination does this, and the keys of its puts. */
async function open(put: Target['put'], { timeoutMs = 10_000, retries = 3, serial = false } = {}) {
  const keys: string[] = []
  const target: Target = {
    traits: { serial },
    put(object, signal) {
      keys.push(object.key)
      return put(object, signal)
    },
  }
  const common = { onConflict: 'replace' } as const
  const process = await openProcess({ one: { target, common } }, { limits: { timeoutMs, retries } })
  return { ...process, keys }
}

/** One that fails with each of the errors in turn and then succeeds. */
function openFailing(errors: readonly unknown[], limits = {}) {
  const left = [...errors]
  return open(async ({ key }) => {
    if (left.length > 0) throw left.shift()
    return { url: `https://img.example/${key}` }
  }, limits)
}

const problemOf = ({ outcomes: [one] }: Uploaded) => (one?.ok ? undefined : one?.error)
const coded = (code: string) => Object.assign(new Error(`${code} happened`), { code })
const soon = (code: 'destination_failed' | 'too_large' = 'destination_failed', retryAfterS = 0) =>
  new UploadError(code, 'passes', { retryable: true, retryAfterS })
const CHECK = 'Check "providers.test.one" in the configuration.'

describe('a file', () => {
  it.each<[string, unknown]>([
    ...['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'ETIMEDOUT', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'].map(
      (code): [string, unknown] => [code, coded(code)],
    ),
    [
      'a reason along the causes',
      new TypeError('fetch failed', { cause: new Error('outer', { cause: coded('ECONNRESET') }) }),
    ],
    ['what the provider calls transient', soon('too_large')],
  ])('is put again after %s, under the same key', async (_, error) => {
    const { send, keys } = await openFailing([error])
    expect(keysOf(await send({ 'a.txt': 'one' }))).toEqual(['a.txt'])
    expect(keys).toEqual(['a.txt', 'a.txt'])
  })

  it('is given up after so many further attempts, and the error says what, where and why', async () => {
    const errors = Array.from({ length: 9 }, () => coded('ECONNREFUSED'))
    const { send, keys } = await openFailing(errors, { retries: 2 })
    expect(problemOf(await send({ 'a.txt': 'one' }))).toMatchObject({
      code: 'destination_failed',
      message:
        'Could not store "a.txt" at test/one: it refuses connections. Try again, or check "providers.test.one" in the configuration.',
    })
    expect(keys).toHaveLength(3)
  })

  it.each<[string, unknown, string, string?]>([
    ['an error', new Error('no such bucket'), `: no such bucket. ${CHECK}`],
    ['a text', 'odd', `: odd. ${CHECK}`],
    ['nothing', undefined, ''],
    ['ENOENT', coded('ENOENT'), `: ENOENT. ${CHECK}`],
    [
      'a full disk',
      coded('ENOSPC'),
      ...([': no space left. Free some space there and try again.', 'insufficient_storage'] as const),
    ],
    ['a full quota', coded('EDQUOT'), '', 'insufficient_storage'],
    [
      'what the provider knows better',
      new Problem('it has more than 25 MB', { code: 'too_large' }),
      ...([': it has more than 25 MB. Send a smaller file.', 'too_large'] as const),
    ],
    ['a failure that asks for a pause of a minute', soon('destination_failed', 60), 'passes'],
  ])('is not put again after %s', async (_, error, message, code = 'destination_failed') => {
    const { send, keys } = await openFailing([error])
    const problem = problemOf(await send({ 'a.txt': 'one' }))
    expect(problem).toMatchObject({ code, message: expect.stringContaining(message) })
    expect(keys).toHaveLength(1)
  })
})

const untilAborted = (attempt: AbortSignal) =>
  new Promise<never>((_, reject) => {
    attempt.addEventListener('abort', () => reject(new DOMException('It was aborted', 'AbortError')))
  })

describe('the time limit', () => {
  it.each<[what: string, put: (attempt: AbortSignal) => Promise<never>]>([
    ['ends the delivery even where the provider does not look at its signal', () => new Promise(() => {})],
    ['is reported as such whatever the provider makes of its signal', untilAborted],
  ])('%s, which is aborted', async (_, put) => {
    const signals: AbortSignal[] = []
    const { send } = await open(
      (_, attempt) => {
        signals.push(attempt)
        return put(attempt)
      },
      { timeoutMs: 100 },
    )
    expect(problemOf(await send({ 'a.txt': 'one' }))).toMatchObject({ code: 'destination_timeout' })
    expect(signals.map(attempt => attempt.aborted)).toEqual([true])
  })

  it('holds for all attempts together: a hanging destination took four times as long', async () => {
    let puts = 0
    const { send, keys } = await open(
      async (_, attempt) => {
        if (++puts === 2) return untilAborted(attempt)
        throw soon()
      },
      { timeoutMs: 300, retries: 9 },
    )
    expect(problemOf(await send({ 'a.txt': 'one' }))).toMatchObject({ code: 'destination_timeout' })
    expect(keys).toHaveLength(2)
  })

  it('counts waiting for a turn, which a put keeps until it has really ended', async () => {
    const ends: (() => void)[] = []
    const { send, keys } = await open(
      ({ key }) => new Promise(resolve => ends.push(() => resolve({ url: `https://img.example/${key}` }))),
      { timeoutMs: 300, retries: 0, serial: true },
    )
    const both = await Promise.all([send({ 'a.txt': 'one' }), send({ 'b.txt': 'two' })])
    expect(both.map(problemOf)).toMatchObject(Array(2).fill({ code: 'destination_timeout' }))
    const [first] = keys
    expect(keys).toEqual([first])
    const last = send({ 'c.txt': 'three' })
    ends[0]?.()
    await expect.poll(() => keys).toEqual([first, 'c.txt'])
    ends[1]?.()
    expect(keysOf(await last)).toEqual(['c.txt'])
  })
})

it('a process that ends ends an attempt, also where the provider does not look', async () => {
  const reason = new Error('gone')
  let attempt: AbortSignal | undefined
  const process = await open((_, signal) => {
    attempt = signal
    setImmediate(() => process.ending.abort(reason))
    return new Promise(() => {})
  })
  await process.send({ 'a.txt': 'one' }).catch(() => {})
  expect(attempt?.reason).toBe(reason)
})

it('a process that ends does not wait for a destination that is asked what became of a transfer, also where the provider does not look', async () => {
  let looks = 0
  const exists = () => (++looks === 1 ? Promise.resolve(false) : new Promise<never>(() => {}))
  const put = () => Promise.reject(new UploadError('destination_failed', 'lost', { retryable: true }))
  const { deps, send, database, ending } = await openProcess({ deaf: { target: { put, exists } } })
  await send({ 'a.txt': 'one' })
  await expect.poll(() => looks).toBe(2)
  ending.abort(new Error('gone'))
  await deps.background.idle()
  const objects = await database.read(db => db.all(sql`select state, holder from objects`))
  expect(objects, 'it is asked again later').toEqual([{ state: 'storing', holder: '' }])
})

it('a target that takes one put at a time gets one at a time, and others their turn while one pauses', async () => {
  let running = 0
  let isFirst = true
  const { send, keys } = await open(
    async ({ key }) => {
      expect(++running).toBe(1)
      await new Promise(setImmediate)
      running--
      if (isFirst) {
        isFirst = false
        throw soon('destination_failed', 0.2)
      }
      return { url: `https://img.example/${key}` }
    },
    { serial: true },
  )
  const names = ['a.txt', 'b.txt', 'c.txt']
  const all = await Promise.all(names.map(name => send({ [name]: name })))
  expect(all.flatMap(keysOf)).toEqual(names)
  expect(keys).toHaveLength(4)
  expect(keys[3]).toBe(keys[0])
})

/** A destination whose puts do not look at their signal, and end when they are told to. */
function makeDeaf(more: Partial<Target> = {}) {
  const puts: { object: UploadObject; end(): void; fail(): void }[] = []
  const put = (object: UploadObject) =>
    new Promise<Stored>((resolve, reject) => {
      const end = () => resolve({ url: `https://img.example/${object.key}` })
      puts.push({ object, end, fail: () => reject(new Error('late')) })
    })
  return { puts, deaf: { target: { put, ...more } } }
}

it.each(['end', 'fail'] as const)(
  'a put that went on behind the time limit read a payload that was gone, and met the next put of its key (%s)',
  async how => {
    const { puts, deaf } = makeDeaf()
    const { deps, send, database } = await openProcess({ deaf }, { limits: { timeoutMs: 300, retries: 0 } })
    expect(keysOf(await send({ 'a.txt': 'one' }))).toEqual([
      'Could not store "a.txt" at test/deaf within 0.3 s. Try again, or raise limits.destinationTimeout.',
    ])
    const [late] = puts
    expect((await bytesOf(late!.object)).toString()).toBe('one')

    const sendNext = async (content: string) => {
      const sending = send({ 'a.txt': content })
      const count = puts.length + 1
      await expect.poll(() => puts).toHaveLength(count)
      puts.at(-1)?.end()
      return keysOf(await sending)
    }
    expect(await sendNext('two')).toEqual(['a-2.txt'])
    late?.[how]()
    await deps.background.idle()
    await expect.poll(() => existsSync(String(late?.object.path))).toBe(false)
    expect(await sendNext('three')).toEqual(['a.txt'])
    const known = await database.read(db => findFiles(db, { key: 'a.txt', limit: 9 }))
    expect(known, 'what arrived late is in the history').toHaveLength(how === 'end' ? 2 : 1)
  },
)

it('a copy that arrived late counted for the quota a second time', async () => {
  const { puts, deaf } = makeDeaf()
  const common = { mirrors: [{ destination: 'test/deaf', required: false }] }
  const put = async ({ key }: UploadObject) => ({ url: `https://img.example/${key}` })
  const limits = { timeoutMs: 300, retries: 0 }
  const { deps, send, database } = await openProcess({ main: { target: { put }, common }, deaf }, { limits })
  const quotas = [{ client: 'loopback', group: 'loopback', windowMs: 1e12, files: 9 }]
  await send({ 'a.txt': 'one' }, { caller: { ...CALLER, quotas } })
  puts[0]?.end()
  await deps.background.idle()
  expect(await database.read(db => findFiles(db, { limit: 9 }))).toHaveLength(2)
  expect(await database.read(currentQuotas)).toMatchObject([{ files: 1 }])
})

it('a put that went on after its client had left read a payload that was gone', async () => {
  const { puts, deaf } = makeDeaf()
  const { send, database } = await openProcess({ deaf })
  const leaver = new AbortController()
  const sending = send({ 'a.txt': 'one' }, { signal: leaver.signal })
  await expect.poll(() => puts).toHaveLength(1)
  leaver.abort(new Error('gone'))
  expect((await bytesOf(puts[0]!.object)).toString()).toBe('one')
  puts[0]?.end()
  await sending
  expect(existsSync(String(puts[0]?.object.path))).toBe(false)
  expect(await database.read(db => findFiles(db, { limit: 9 }))).toMatchObject([{ key: 'a.txt' }])
})
