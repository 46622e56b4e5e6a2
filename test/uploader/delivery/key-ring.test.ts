import { describe, expect, it } from 'vitest'
import { createKeyRing, type KeyRing } from '../../../src/uploader/delivery/key-ring.ts'

const never = new AbortController().signal
let count = 0
/** Takes a key for bytes that nobody else has. */
const takeFor = async (ring: KeyRing, key: string, refuses?: (key: string) => Promise<boolean>) =>
  (await ring.take(key, `bytes ${++count}`, never, refuses)).key

describe('the key ring', () => {
  it('numbers keys that are in use before their extension', async () => {
    const ring = createKeyRing()
    const take = () => takeFor(ring, '2026/a.tar.gz')
    expect([await take(), await take(), await take()]).toEqual([
      '2026/a.tar.gz',
      '2026/a.tar-2.gz',
      '2026/a.tar-3.gz',
    ])
  })

  it.each([
    ['a', 'a-2'],
    ['.env', '.env-2'],
    ['a.b/c', 'a.b/c-2'],
    ['日本.png', '日本-2.png'],
  ])('numbers %j as %j', async (key, second) => {
    const ring = createKeyRing()
    await takeFor(ring, key)
    expect(await takeFor(ring, key)).toBe(second)
  })

  it('gives a released key out again', async () => {
    const ring = createKeyRing()
    await takeFor(ring, 'a.png')
    await takeFor(ring, 'a.png')
    ring.release('a.png')
    expect(await takeFor(ring, 'a.png')).toBe('a.png')
    expect(await takeFor(ring, 'a.png')).toBe('a-3.png')
  })

  it.each([
    ['a.png', 'A.PNG', 'A-2.PNG'],
    ['é.png', 'e\u0301.png', 'e\u0301-2.png'],
    ['Ordner/x', 'ordner/X', 'ordner/X-2'],
  ])('holds %j and %j for the same, since some disks do', async (first, second, given) => {
    const ring = createKeyRing()
    await takeFor(ring, first)
    expect(await takeFor(ring, second)).toBe(given)
    ring.release(first)
    ring.release(given)
    expect(await takeFor(ring, second)).toBe(second)
  })

  it('gives every caller another key when many ask at once and each look takes a while', async () => {
    const ring = createKeyRing()
    const refuses = async (key: string) => {
      await new Promise(resolve => setImmediate(resolve))
      return key === 'a-2.png'
    }
    const keys = await Promise.all(Array.from({ length: 50 }, () => takeFor(ring, 'a.png', refuses)))
    expect(new Set(keys).size).toBe(50)
    expect(keys).not.toContain('a-2.png')
  })

  it('does not keep keys that were refused', async () => {
    const ring = createKeyRing()
    expect(await takeFor(ring, 'a.png', async key => key === 'a.png')).toBe('a-2.png')
    expect(await takeFor(ring, 'a.png')).toBe('a.png')
  })

  it('does not keep a key when looking fails', async () => {
    const ring = createKeyRing()
    const failure = new Error('down')
    await expect(
      takeFor(ring, 'a.png', async () => {
        throw failure
      }),
    ).rejects.toBe(failure)
    expect(await takeFor(ring, 'a.png')).toBe('a.png')
  })

  describe('for the same bytes', () => {
    const take = (ring: KeyRing, key = 'a.png', signal: AbortSignal = never) => ring.take(key, 'same', signal)
    const stored = { url: 'https://img.example/a.png' }

    it('gives what was stored by somebody who still has the key, also to those who waited', async () => {
      const ring = createKeyRing()
      expect(await take(ring)).toEqual({ key: 'a.png', stored: undefined })
      const waiting = [take(ring), take(ring)]
      ring.settle('a.png', stored)
      ring.release('a.png') // as if that request were answered before they got to run
      expect(await Promise.all([...waiting, take(ring)])).toEqual(Array(3).fill({ key: 'a.png', stored }))
      expect(await takeFor(ring, 'a.png')).toBe('a-2.png')
      for (let held = 3; held > 0; held--) ring.release('a.png')
      expect(await takeFor(ring, 'a.png')).toBe('a.png')
    })

    it('has the next one try when the first one fails', async () => {
      const ring = createKeyRing()
      await take(ring)
      const waiting = [take(ring), take(ring)]
      ring.release('a.png')
      expect(await waiting[0]).toEqual({ key: 'a.png', stored: undefined })
      ring.settle('a.png', stored)
      expect(await waiting[1]).toEqual({ key: 'a.png', stored })
    })

    it('lets who waits leave, and asks nothing of who has left', async () => {
      const ring = createKeyRing()
      await take(ring)
      const leaver = new AbortController()
      const gone = take(ring, 'a.png', leaver.signal)
      leaver.abort(new Error('gone'))
      await expect(gone).rejects.toThrow('gone')
      ring.release('a.png')
      expect(await takeFor(ring, 'a.png')).toBe('a.png')
    })

    it('tells spellings apart that are one file on some disks only', async () => {
      const ring = createKeyRing()
      await take(ring)
      expect(await take(ring, 'A.PNG')).toEqual({ key: 'A-2.PNG', stored: undefined })
    })
  })
})
