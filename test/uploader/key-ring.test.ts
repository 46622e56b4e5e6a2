import { describe, expect, it } from 'vitest'
import { createKeyRing } from '../../src/uploader/key-ring.ts'

describe('the key ring', () => {
  it('numbers keys that are in use before their extension', async () => {
    const ring = createKeyRing()
    const take = () => ring.take('2026/a.tar.gz')
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
    await ring.take(key)
    expect(await ring.take(key)).toBe(second)
  })

  it('gives a released key out again', async () => {
    const ring = createKeyRing()
    await ring.take('a.png')
    await ring.take('a.png')
    ring.release('a.png')
    expect(await ring.take('a.png')).toBe('a.png')
    expect(await ring.take('a.png')).toBe('a-3.png')
  })

  it.each([
    ['a.png', 'A.PNG', 'A-2.PNG'],
    ['é.png', 'e\u0301.png', 'e\u0301-2.png'],
    ['Ordner/x', 'ordner/X', 'ordner/X-2'],
  ])('holds %j and %j for the same, since some disks do', async (first, second, given) => {
    const ring = createKeyRing()
    await ring.take(first)
    expect(await ring.take(second)).toBe(given)
    ring.release(first)
    ring.release(given)
    expect(await ring.take(second)).toBe(second)
  })

  it('gives every caller another key when many ask at once and each look takes a while', async () => {
    const ring = createKeyRing()
    const refuses = async (key: string) => {
      await new Promise(resolve => setImmediate(resolve))
      return key === 'a-2.png'
    }
    const keys = await Promise.all(Array.from({ length: 50 }, () => ring.take('a.png', refuses)))
    expect(new Set(keys).size).toBe(50)
    expect(keys).not.toContain('a-2.png')
  })

  it('does not keep keys that were refused', async () => {
    const ring = createKeyRing()
    expect(await ring.take('a.png', async key => key === 'a.png')).toBe('a-2.png')
    expect(await ring.take('a.png')).toBe('a.png')
  })

  it('does not keep a key when looking fails', async () => {
    const ring = createKeyRing()
    const failure = new Error('down')
    await expect(
      ring.take('a.png', async () => {
        throw failure
      }),
    ).rejects.toBe(failure)
    expect(await ring.take('a.png')).toBe('a.png')
  })
})
