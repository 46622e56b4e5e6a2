import { describe, expect, it } from 'vitest'
import type { Payload } from '../../../src/payload/index.ts'
import { chooseKey } from '../../../src/uploader/delivery/choose-key.ts'
import type { Destination } from '../../../src/uploader/delivery/destinations.ts'
import { createMemoryLocker, type Locker } from '../../../src/uploader/delivery/locker.ts'

const { signal } = new AbortController()
const around = { locations: new Map(), history: { history: async () => [] } }
let count = 0

/** Takes a key for bytes that nobody else has. @param exists what is there already */
function take(locker: Locker, key: string, exists?: (key: string) => Promise<boolean>) {
  const onConflict = exists ? 'rename' : 'replace'
  const at = { type: 's3', name: 'a', location: 's3://a/', onConflict, target: { exists } }
  const request = { retryContext: undefined, end: 'never' as const }
  const payload = { sha256: `bytes ${++count}` } as Payload
  return chooseKey(payload, at as unknown as Destination, key, locker, request, around, signal)
}

const keyOf = async (...wanted: Parameters<typeof take>) => (await take(...wanted)).key

describe('a key that is in use', () => {
  it.each([
    ['a', 'a-2'],
    ['.env', '.env-2'],
    ['a.b/c', 'a.b/c-2'],
    ['日本.png', '日本-2.png'],
    ['2026/a.tar.gz', '2026/a.tar-2.gz'],
  ])('%j is numbered as %j', async (key, second) => {
    const locker = createMemoryLocker()
    await take(locker, key)
    expect(await keyOf(locker, key)).toBe(second)
  })

  it('is given out again once it is released', async () => {
    const locker = createMemoryLocker()
    const first = await take(locker, 'a.png')
    expect(await keyOf(locker, 'A.png')).toBe('A-2.png')
    first.lock.release()
    expect(await keyOf(locker, 'a.png')).toBe('a.png')
    expect(await keyOf(locker, 'a.png')).toBe('a-3.png')
  })

  it('is not kept when something is there already', async () => {
    const locker = createMemoryLocker()
    expect(await keyOf(locker, 'a.png', async key => key === 'a.png')).toBe('a-2.png')
    expect(await keyOf(locker, 'a.png')).toBe('a.png')
  })

  it('is another one for each when many ask at once and each look takes a while', async () => {
    const locker = createMemoryLocker()
    const exists = async (key: string) => {
      await new Promise(resolve => setImmediate(resolve))
      return key === 'a-2.png'
    }
    const keys = await Promise.all(Array.from({ length: 50 }, () => keyOf(locker, 'a.png', exists)))
    expect(new Set(keys).size).toBe(50)
    expect(keys).not.toContain('a-2.png')
  })
})
