import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { inMemory } from '../../src/body.ts'
import { UploadError } from '../../src/errors.ts'
import { Problem } from '../../src/problem.ts'
import { defineProvider, type Stored, type Target, type UploadObject } from '../../src/providers/contract.ts'
import { findFiles } from '../../src/store/history.ts'
import { currentQuotas } from '../../src/store/quotas.ts'
import type { Destination } from '../../src/uploader/destinations.ts'
import type { Uploaded } from '../../src/uploader/index.ts'
import { openDestinations } from '../../src/uploader/open.ts'
import { deliverObject } from '../helpers/deliver-object.ts'
import { bytesOf } from '../helpers/provider-contract.ts'
import { CALLER, openProcess } from '../helpers/uploader.ts'

const OBJECT: UploadObject = {
  ...inMemory(Buffer.from('a')),
  key: '2026/a.png',
  contentType: 'image/png',
  sha256: '00',
}

const quick = { timeoutMs: 10_000, retries: 3 }

async function open(target: Target): Promise<Destination> {
  const provider = defineProvider({ type: 'test', config: z.object({}), open: () => target })
  const common = { onConflict: 'replace', dedupe: false } as const
  const [destination] = await openDestinations(
    [{ type: 'test', name: 'one', provider, options: {}, common }],
    '{filename}',
    () => {},
  )
  return destination as Destination
}

/** A target that fails with each of the errors in turn and then succeeds, and how often it was asked. */
async function failing(...errors: unknown[]) {
  const keys: string[] = []
  const destination = await open({
    put: async ({ key }) => {
      if (keys.push(key) <= errors.length) throw errors[keys.length - 1]
      return { url: `https://img.example/${key}`, deleteUrl: 'https://img.example/delete' }
    },
  })
  return { destination, keys, puts: () => keys.length }
}

const coded = (code: string) => Object.assign(new Error(`${code} happened`), { code })
const soon = (code: 'destination_failed' | 'too_large' = 'destination_failed') =>
  new UploadError(code, 'passes', { retryable: true, retryAfterS: 0 })

const CHECK = 'Check "providers.test.one" in the configuration.'

describe('an object', () => {
  it.each<[string, unknown]>([
    ...['ECONNRESET', 'ECONNREFUSED', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT', 'EAI_AGAIN', 'EHOSTUNREACH'].map(
      code => [code, coded(code)] as [string, unknown],
    ),
    ['ENETUNREACH', coded('ENETUNREACH')],
    [
      'a reason along the causes',
      new TypeError('fetch failed', { cause: new Error('outer', { cause: coded('ECONNRESET') }) }),
    ],
    ['what the provider calls transient', soon('too_large')],
  ])('is put again after %s, under the same key', async (_, error) => {
    const { destination, puts, keys } = await failing(error)
    await deliverObject(destination, OBJECT, quick)
    expect(puts()).toBe(2)
    expect(new Set(keys)).toEqual(new Set([OBJECT.key]))
  })

  it('is given up after so many further attempts, and the error says what, where and why', async () => {
    const errors = Array.from({ length: 9 }, () => coded('ECONNREFUSED'))
    const { destination, puts } = await failing(...errors)
    await expect(deliverObject(destination, OBJECT, { ...quick, retries: 2 })).rejects.toMatchObject({
      name: 'UploadError',
      code: 'destination_failed',
      message:
        'Could not store "2026/a.png" at test/one: it refuses connections. Try again, or check "providers.test.one" in the configuration.',
      cause: errors[2],
    })
    expect(puts()).toBe(3)
  })

  it.each<[string, unknown, object]>([
    [
      'an error',
      new Error('no such bucket'),
      {
        code: 'destination_failed',
        message: `Could not store "2026/a.png" at test/one: no such bucket. ${CHECK}`,
      },
    ],
    ['a text', 'odd', { message: `Could not store "2026/a.png" at test/one: odd. ${CHECK}` }],
    ['nothing', undefined, { code: 'destination_failed' }],
    ['ENOENT', coded('ENOENT'), { message: `Could not store "2026/a.png" at test/one: ENOENT. ${CHECK}` }],
    [
      'a full disk',
      coded('ENOSPC'),
      {
        code: 'insufficient_storage',
        message:
          'Could not store "2026/a.png" at test/one: no space left. Free some space there and try again.',
      },
    ],
    ['a full quota', coded('EDQUOT'), { code: 'insufficient_storage' }],
    [
      'what the provider knows better',
      new Problem('it has more than 25 MB', { code: 'too_large' }),
      {
        code: 'too_large',
        message: 'Could not store "2026/a.png" at test/one: it has more than 25 MB. Send a smaller file.',
      },
    ],
  ])('is not put again after %s', async (_, error, expected) => {
    const { destination, puts } = await failing(error)
    await expect(deliverObject(destination, OBJECT, quick)).rejects.toMatchObject(expected)
    expect(puts()).toBe(1)
  })
})

describe('the time limit', () => {
  const untilAborted = (attempt: AbortSignal) =>
    new Promise<never>((_, reject) => {
      attempt.addEventListener('abort', () =>
        reject(new DOMException('This operation was aborted', 'AbortError')),
      )
    })

  it.each<[what: string, put: (attempt: AbortSignal) => Promise<never>]>([
    ['ends the delivery even where the provider does not look at its signal', () => new Promise(() => {})],
    ['is reported as such whatever the provider makes of its signal', untilAborted],
  ])('%s, which is aborted', async (_, put) => {
    const signals: AbortSignal[] = []
    const destination = await open({
      put: (_, attempt) => {
        signals.push(attempt)
        return put(attempt)
      },
    })
    await expect(deliverObject(destination, OBJECT, { timeoutMs: 30, retries: 3 })).rejects.toMatchObject({
      code: 'destination_timeout',
    })
    expect(signals.map(attempt => attempt.aborted)).toEqual([true])
  })

  it('holds for all attempts together: a hanging destination took four times as long', async () => {
    let puts = 0
    const destination = await open({
      async put(_, attempt) {
        puts++
        if (puts === 2) return untilAborted(attempt)
        throw soon()
      },
    })
    await expect(deliverObject(destination, OBJECT, { timeoutMs: 100, retries: 9 })).rejects.toMatchObject({
      code: 'destination_timeout',
    })
    expect(puts).toBe(2)
  })

  it('counts waiting for a turn, which a put keeps until it has really ended', async () => {
    const ends: (() => void)[] = []
    const begun: string[] = []
    const destination = await open({
      traits: { serial: true },
      put: ({ key }) => {
        begun.push(key)
        return new Promise(resolve => ends.push(() => resolve({ url: `files/${key}` })))
      },
    })
    const short = { timeoutMs: 30, retries: 0 }
    const results = ['a', 'b'].map(key => deliverObject(destination, { ...OBJECT, key }, short))
    for (const result of results) await expect(result).rejects.toMatchObject({ code: 'destination_timeout' })
    expect(begun).toEqual(['a'])
    const last = deliverObject(destination, { ...OBJECT, key: 'c' }, quick)
    await new Promise(setImmediate)
    expect(begun).toEqual(['a'])
    ends[0]?.()
    await expect.poll(() => begun).toEqual(['a', 'c'])
    ends[1]?.()
    expect(await last).toEqual({ url: 'files/c' })
  })
})

describe('a process that ends', () => {
  const reason = new Error('gone')

  it('during an attempt ends it, also where the provider does not look', async () => {
    const leaver = new AbortController()
    let attempt: AbortSignal | undefined
    const destination = await open({
      put: (_, signal) => {
        attempt = signal
        setImmediate(() => leaver.abort(reason))
        return new Promise(() => {})
      },
    })
    await expect(deliverObject(destination, OBJECT, quick, leaver.signal)).rejects.toBe(reason)
    expect(attempt?.reason).toBe(reason)
  })
})

describe('a target that takes one put at a time', () => {
  it('gets one at a time, in order, and others their turn while one pauses', async () => {
    let running = 0
    const begun: string[] = []
    const destination = await open({
      traits: { serial: true },
      async put({ key }) {
        expect(++running).toBe(1)
        await new Promise(resolve => setImmediate(resolve))
        running--
        begun.push(key)
        if (key === 'a' && begun.length === 1)
          throw new UploadError('destination_failed', 'busy', { retryable: true, retryAfterS: 0.05 })
        return { url: `files/${key}` }
      },
    })
    const keys = ['a', 'b', 'c']
    const results = keys.map(key => deliverObject(destination, { ...OBJECT, key }, quick))
    expect(await Promise.all(results)).toEqual([{ url: 'files/a' }, { url: 'files/b' }, { url: 'files/c' }])
    expect(begun).toEqual(['a', 'b', 'c', 'a'])
  })
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

const keysOf = ({ outcomes }: Uploaded) => outcomes.map(one => (one.ok ? one.key : one.error.message))

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
