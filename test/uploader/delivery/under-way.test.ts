import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { createPayloads, type Payload } from '../../../src/payload/index.ts'
import { createSpool } from '../../../src/payload/spool.ts'
import { defineProvider, type Stored, type UploadObject } from '../../../src/providers/contract.ts'
import { createLocks, createMemoryLocker, createStoreLocker } from '../../../src/uploader/delivery/locker.ts'
import { openDestinations } from '../../../src/uploader/delivery/open.ts'
import { type StoreFileRequest, storeFile } from '../../../src/uploader/delivery/store-file.ts'
import { makeDirectory } from '../../helpers/directory.ts'

const { signal } = new AbortController()

/** A destination whose puts do not look at their signal, and end when they are told to. */
async function openDeaf() {
  const puts: { object: UploadObject; end(): void; fail(): void }[] = []
  const provider = defineProvider({
    type: 'test',
    config: z.object({}),
    open: () => ({
      put: object =>
        new Promise<Stored>((resolve, reject) => {
          const end = () => resolve({ url: `https://img.example/${object.key}` })
          puts.push({ object, end, fail: () => reject(new Error('late')) })
        }),
    }),
  })
  const common = { onConflict: 'replace', dedupe: false } as const
  const spec = { type: 'test', name: 'deaf', provider, options: {}, common }
  const [destination] = await openDestinations([spec], '{filename}{extname}', () => {})
  const deps = {
    destinations: [],
    locations: new Map(),
    store: { history: async () => [], promised: async () => [] },
    mask: (text: string) => text,
    warn: () => {},
  }
  const locker = createMemoryLocker()
  const spool = createSpool(join(await makeDirectory(), 'spool'))
  const payloads = createPayloads(0)
  return {
    puts,
    locker,
    payloadOf: (content: string) => payloads.read(bodyOf(content), { name: 'a.txt', spool, limit: 1e9 }),
    storeFile(payload: Payload, { timeoutMs = 10_000, cancellation = signal, ...more }: Asked = {}) {
      const baseUrl = 'http://127.0.0.1/'
      const request: StoreFileRequest = {
        ...{ baseUrl, signal: cancellation, now: new Date(), retryContext: undefined },
        end: 'never',
        lockerOf: () => locker,
        ...more,
      }
      return storeFile(payload, {}, destination!, request, { ...deps, limits: { timeoutMs, retries: 0 } })
    },
  }
}

type Asked = { timeoutMs?: number; cancellation?: AbortSignal } & Partial<
  Pick<StoreFileRequest, 'lockerOf' | 'baseUrl'>
>

async function* bodyOf(content: string) {
  yield Buffer.from(content)
}

it.each(['end', 'fail'] as const)(
  'a put that went on behind the time limit read a payload that was gone, and met the next put of its key (%s)',
  async how => {
    const { puts, payloadOf, storeFile } = await openDeaf()
    const payload = await payloadOf('one')
    await expect(storeFile(payload, { timeoutMs: 50 })).rejects.toMatchObject({ code: 'delivery_timeout' })
    await payload.dispose()
    expect((await puts[0]?.object.bytes())?.toString()).toBe('one')

    const other = await payloadOf('two')
    const second = storeFile(other)
    await expect.poll(() => puts).toHaveLength(2)
    puts[1]?.end()
    expect(await second).toMatchObject({ key: 'a-2.txt' })

    puts[0]?.[how]()
    await expect.poll(() => existsSync(String(payload.path))).toBe(false)
    const third = storeFile(other)
    await expect.poll(() => puts).toHaveLength(3)
    puts[2]?.end()
    expect(await third).toMatchObject({ key: 'a.txt' })
    await other.dispose()
  },
)

it.each(['locked', 'not locked'])(
  'a put that went on after its client had left read a payload that was gone (%s)',
  async how => {
    const { puts, payloadOf, storeFile } = await openDeaf()
    const leaver = new AbortController()
    const payload = await payloadOf('one')
    const without = how === 'locked' ? {} : { lockerOf: () => undefined }
    const stored = storeFile(payload, { cancellation: leaver.signal, ...without })
    await expect.poll(() => puts).toHaveLength(1)
    leaver.abort(new Error('gone'))
    await expect(stored).rejects.toThrow('gone')
    await payload.dispose()
    expect((await puts[0]?.object.bytes())?.toString()).toBe('one')
    puts[0]?.end()
    await expect.poll(() => existsSync(String(payload.path))).toBe(false)
  },
)

it.each([
  ['the store was down', 'http://a.example/', 'the store is down'],
  ['no link could be made', 'nonsense', 'Invalid URL'],
])(
  'an object stayed locked when %s once it was taken for bytes that were stored',
  async (_, baseUrl, message) => {
    const { puts, locker, payloadOf, storeFile } = await openDeaf()
    const payload = await payloadOf('one')
    const locks = createLocks(locker)
    const first = storeFile(payload, { lockerOf: () => locks })
    await expect.poll(() => puts).toHaveLength(1)
    const down = { lockObject: () => Promise.reject(new Error('the store is down')) }
    const failingLocker = createStoreLocker(down, locker, { id: 'job', owner: 'me' })
    const lockerOf = () => (baseUrl === 'nonsense' ? locker : failingLocker)
    const failing = [1, 2].map(() => storeFile(payload, { lockerOf, baseUrl }))
    const failed = Promise.allSettled(failing)
    puts[0]?.end()
    expect(await first).toMatchObject({ key: 'a.txt' })
    for (const one of await failed)
      expect(one).toMatchObject({ reason: { message: expect.stringContaining(message) } })
    await locks.end()

    const other = await payloadOf('two')
    const second = storeFile(other)
    await expect.poll(() => puts).toHaveLength(2)
    puts[1]?.end()
    expect(await second, 'other bytes get the key').toMatchObject({ key: 'a.txt' })
    await Promise.all([payload, other].map(one => one.dispose()))
  },
)

it('without a lock, uploads of the same bytes wait for nothing', async () => {
  const { puts, payloadOf, storeFile } = await openDeaf()
  const payload = await payloadOf('one')
  const both = [1, 2].map(() => storeFile(payload, { lockerOf: () => undefined }))
  await expect.poll(() => puts).toHaveLength(2)
  for (const put of puts) put.end()
  const url = 'https://img.example/a.txt'
  expect(await Promise.all(both)).toMatchObject([
    { key: 'a.txt', url, end: 'never' },
    { key: 'a.txt', url, end: 'never' },
  ])
  await payload.dispose()
})
