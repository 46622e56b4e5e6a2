import { getEventListeners } from 'node:events'
import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { UploadError } from '../../../src/errors.ts'
import { defineProvider, type Target, type UploadObject } from '../../../src/providers/contract.ts'
import { deliver } from '../../../src/uploader/delivery/deliver.ts'
import type { Destination } from '../../../src/uploader/delivery/destinations.ts'
import { openDestinations } from '../../../src/uploader/delivery/open.ts'

const OBJECT: UploadObject = {
  key: '2026/a.png',
  size: 1,
  contentType: 'image/png',
  sha256: '00',
  stream: () => Readable.from([Buffer.from('a')]),
  bytes: async () => Buffer.from('a'),
}

const { signal } = new AbortController()
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
  let puts = 0
  const destination = await open({
    put: async ({ key }) => {
      if (puts++ < errors.length) throw errors[puts - 1]
      return { url: `https://img.example/${key}`, deleteUrl: 'https://img.example/delete' }
    },
  })
  return { destination, puts: () => puts }
}

const coded = (code: string) => Object.assign(new Error(`${code} happened`), { code })
const soon = (code: 'delivery_failed' | 'too_large' = 'delivery_failed') =>
  new UploadError(code, 'passes', { retryable: true, retryAfterS: 0 })

const CHECK = 'Check "providers.test.one" in the configuration.'

describe('deliver', () => {
  it('puts once and answers what the target answers', async () => {
    const { destination, puts } = await failing()
    expect(await deliver(destination, OBJECT, quick, signal)).toEqual({
      url: 'https://img.example/2026/a.png',
      deleteUrl: 'https://img.example/delete',
    })
    expect(puts()).toBe(1)
  })

  it.each([
    ...['ECONNRESET', 'ECONNREFUSED', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT', 'EAI_AGAIN', 'EHOSTUNREACH'],
    'ENETUNREACH',
  ])('tries again after %s', async code => {
    const { destination, puts } = await failing(coded(code))
    await deliver(destination, OBJECT, quick, signal)
    expect(puts()).toBe(2)
  })

  it('finds the reason along the causes', async () => {
    const failure = new TypeError('fetch failed', {
      cause: new Error('outer', { cause: coded('ECONNRESET') }),
    })
    const { destination, puts } = await failing(failure)
    await deliver(destination, OBJECT, quick, signal)
    expect(puts()).toBe(2)
  })

  it('gives up after so many further attempts, and says what, where and why', async () => {
    const errors = Array.from({ length: 9 }, () => coded('ECONNREFUSED'))
    const { destination, puts } = await failing(...errors)
    await expect(deliver(destination, OBJECT, { ...quick, retries: 2 }, signal)).rejects.toMatchObject({
      name: 'UploadError',
      code: 'delivery_failed',
      message:
        'Could not store "2026/a.png" at test/one: it refuses connections. Try again, or check "providers.test.one" in the configuration.',
      cause: errors[2],
    })
    expect(puts()).toBe(3)
  })

  it('does not try again without retries', async () => {
    const { destination, puts } = await failing(soon())
    await expect(deliver(destination, OBJECT, { ...quick, retries: 0 }, signal)).rejects.toThrow('passes')
    expect(puts()).toBe(1)
  })

  it.each<[string, unknown, object]>([
    [
      'an error',
      new Error('no such bucket'),
      {
        code: 'delivery_failed',
        message: `Could not store "2026/a.png" at test/one: no such bucket. ${CHECK}`,
      },
    ],
    [
      'a text',
      'odd',
      { code: 'delivery_failed', message: `Could not store "2026/a.png" at test/one: odd. ${CHECK}` },
    ],
    ['nothing', undefined, { code: 'delivery_failed' }],
    [
      'ENOENT',
      coded('ENOENT'),
      { code: 'delivery_failed', message: `Could not store "2026/a.png" at test/one: ENOENT. ${CHECK}` },
    ],
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
      new UploadError('too_large', 'Over 25 MB.'),
      {
        code: 'too_large',
        message: 'Could not store "2026/a.png" at test/one: Over 25 MB. Send a smaller file.',
      },
    ],
  ])('does not try again after %s', async (_, error, expected) => {
    const { destination, puts } = await failing(error)
    await expect(deliver(destination, OBJECT, quick, signal)).rejects.toMatchObject(expected)
    expect(puts()).toBe(1)
  })

  it('turns what is thrown at once into a failure like any other', async () => {
    const destination = await open({
      put() {
        throw new Error('at once')
      },
    })
    await expect(deliver(destination, OBJECT, quick, signal)).rejects.toMatchObject({
      code: 'delivery_failed',
    })
  })

  it('tries again when the provider says so, after the time it says', async () => {
    const pause = new UploadError('delivery_failed', 'busy', { retryable: true, retryAfterS: 0.1 })
    const { destination, puts } = await failing(pause, soon('too_large'))
    const begun = performance.now()
    await deliver(destination, OBJECT, quick, signal)
    expect(puts()).toBe(3)
    expect(performance.now() - begun).toBeGreaterThanOrEqual(95)
  })

  it('sends the same key at every attempt', async () => {
    const keys: string[] = []
    const destination = await open({
      async put({ key }) {
        keys.push(key)
        if (keys.length < 3) throw soon()
        return { url: 'files/x' }
      },
    })
    await deliver(destination, OBJECT, quick, signal)
    expect(keys).toEqual(['2026/a.png', '2026/a.png', '2026/a.png'])
  })
})

describe('the time limit', () => {
  const untilAborted = (attempt: AbortSignal) =>
    new Promise<never>((_, reject) => {
      attempt.addEventListener('abort', () =>
        reject(new DOMException('This operation was aborted', 'AbortError')),
      )
    })

  it('ends the delivery even where the provider does not look at its signal, which is aborted', async () => {
    const signals: AbortSignal[] = []
    const destination = await open({
      put: (_, attempt) => {
        signals.push(attempt)
        return new Promise(() => {})
      },
    })
    await expect(deliver(destination, OBJECT, { timeoutMs: 30, retries: 3 }, signal)).rejects.toMatchObject({
      code: 'delivery_timeout',
      message:
        'Could not store "2026/a.png" at test/one within 0.03 s. Try again, or raise limits.deliveryTimeoutMs.',
    })
    expect(signals.map(attempt => attempt.aborted)).toEqual([true])
  })

  it('is reported as such whatever the provider makes of its signal', async () => {
    const destination = await open({ put: (_, attempt) => untilAborted(attempt) })
    await expect(deliver(destination, OBJECT, { timeoutMs: 20, retries: 0 }, signal)).rejects.toMatchObject({
      code: 'delivery_timeout',
    })
  })

  it('holds for all attempts together: a hanging destination took four times as long', async () => {
    let puts = 0
    const destination = await open({
      async put(_, attempt) {
        puts++
        if (puts === 2) return untilAborted(attempt)
        await new Promise(resolve => setTimeout(resolve, 20))
        throw soon()
      },
    })
    await expect(deliver(destination, OBJECT, { timeoutMs: 100, retries: 9 }, signal)).rejects.toMatchObject({
      code: 'delivery_timeout',
    })
    expect(puts).toBe(2)
  })

  it('is not waited for when the next attempt would come after it: the failure says more', async () => {
    const { destination, puts } = await failing(
      new UploadError('delivery_failed', 'busy', { retryable: true, retryAfterS: 20 }),
    )
    const begun = performance.now()
    await expect(deliver(destination, OBJECT, quick, signal)).rejects.toThrow('busy')
    expect(performance.now() - begun).toBeLessThan(5000)
    expect(puts()).toBe(1)
  })

  it('counts waiting for a turn, which a put keeps until it has really ended', async () => {
    const ends: (() => void)[] = []
    const begun: string[] = []
    const destination = await open({
      serial: true,
      put: ({ key }) => {
        begun.push(key)
        return new Promise(resolve => ends.push(() => resolve({ url: `files/${key}` })))
      },
    })
    const short = { timeoutMs: 30, retries: 0 }
    const results = ['a', 'b'].map(key => deliver(destination, { ...OBJECT, key }, short, signal))
    for (const result of results) await expect(result).rejects.toMatchObject({ code: 'delivery_timeout' })
    expect(begun).toEqual(['a'])
    const last = deliver(destination, { ...OBJECT, key: 'c' }, quick, signal)
    await new Promise(resolve => setTimeout(resolve, 20))
    expect(begun).toEqual(['a'])
    ends[0]?.()
    await expect.poll(() => begun).toEqual(['a', 'c'])
    ends[1]?.()
    expect(await last).toEqual({ url: 'files/c' })
  })

  it('lets a failure that comes after it fall on the floor', async () => {
    let fail: (error: Error) => void = () => {}
    const destination = await open({ put: () => new Promise((_, reject) => (fail = reject)) })
    await expect(deliver(destination, OBJECT, { timeoutMs: 10, retries: 0 }, signal)).rejects.toThrow()
    fail(new Error('too late'))
    await new Promise(resolve => setImmediate(resolve))
  })
})

describe('a client that goes away', () => {
  const reason = new Error('gone')

  it('before the delivery has nothing put', async () => {
    const { destination, puts } = await failing()
    await expect(deliver(destination, OBJECT, quick, AbortSignal.abort(reason))).rejects.toBe(reason)
    expect(puts()).toBe(0)
  })

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
    await expect(deliver(destination, OBJECT, quick, leaver.signal)).rejects.toBe(reason)
    expect(attempt?.reason).toBe(reason)
  })

  it('in the pause between two attempts ends it at once', async () => {
    const leaver = new AbortController()
    const later = new UploadError('delivery_failed', 'busy', { retryable: true, retryAfterS: 20 })
    const { destination, puts } = await failing(later)
    setTimeout(() => leaver.abort(reason), 20)
    const begun = performance.now()
    const patient = { ...quick, timeoutMs: 60_000 }
    await expect(deliver(destination, OBJECT, patient, leaver.signal)).rejects.toBe(reason)
    expect(performance.now() - begun).toBeLessThan(5000)
    expect(puts()).toBe(1)
  })

  it('leaves nothing on a signal that lives on', async () => {
    const { signal: long } = new AbortController()
    const { destination } = await failing(soon(), soon())
    await deliver(destination, OBJECT, quick, long)
    expect(getEventListeners(long, 'abort')).toHaveLength(0)
  })
})

describe('a target that takes one put at a time', () => {
  it('gets one at a time, in order, and others their turn while one pauses', async () => {
    let running = 0
    const begun: string[] = []
    const destination = await open({
      serial: true,
      async put({ key }) {
        expect(++running).toBe(1)
        await new Promise(resolve => setImmediate(resolve))
        running--
        begun.push(key)
        if (key === 'a' && begun.length === 1)
          throw new UploadError('delivery_failed', 'busy', { retryable: true, retryAfterS: 0.05 })
        return { url: `files/${key}` }
      },
    })
    const keys = ['a', 'b', 'c']
    const results = keys.map(key => deliver(destination, { ...OBJECT, key }, quick, signal))
    expect(await Promise.all(results)).toEqual([{ url: 'files/a' }, { url: 'files/b' }, { url: 'files/c' }])
    expect(begun).toEqual(['a', 'b', 'c', 'a'])
  })

  it('does not begin for a client that left while waiting', async () => {
    const leaver = new AbortController()
    const reason = new Error('gone')
    const begun: string[] = []
    const destination = await open({
      serial: true,
      async put({ key }) {
        begun.push(key)
        leaver.abort(reason)
        return { url: `files/${key}` }
      },
    })
    const first = deliver(destination, { ...OBJECT, key: 'a' }, quick, signal)
    const second = deliver(destination, { ...OBJECT, key: 'b' }, quick, leaver.signal)
    await expect(second).rejects.toBe(reason)
    expect(await first).toEqual({ url: 'files/a' })
    expect(begun).toEqual(['a'])
  })
})
