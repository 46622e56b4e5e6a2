import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import type { Stored, UploadObject } from '../providers/contract.ts'
import { expectFileKept, expectStored } from './expect.ts'
import { bytesOf, largeObject, MIB, ODD_NAMES, objectOf, sha256 } from './objects.ts'
import type { Trial } from './trial.ts'

const LARGE_BYTES = 8 * MIB

/** Tests that objects are stored unchanged, with any name, of any size, from memory and from files. */
export function describeStoring(trial: Trial): void {
  const { fresh, put, skipWithout } = trial

  it('stores exactly the bytes, 0x00 and 0xff among them', async () => {
    const every = Buffer.from(Uint8Array.from({ length: 256 }, (_, i) => i).reverse())
    const bytes = Buffer.concat([every, Buffer.from('ff000d0a1a', 'hex'), randomBytes(100_000), every])
    await expectStored(trial.setup, await put(objectOf(fresh('bytes.bin'), bytes)), bytes)
  })

  it.for(ODD_NAMES)(
    'returns a URL in normal form that decodes to the object key: %s',
    async (file, context) => {
      skipWithout(context, 'names')
      const key = fresh(file)
      const stored = await put(objectOf(key, Buffer.from(file), 'image/png'))
      const { pathname } = new URL(stored.url, 'http://127.0.0.1/')
      expect(`${pathname.split('/').map(decodeURIComponent).join('/')}\n`).toContain(`/${key}\n`)
      await expectStored(trial.setup, stored, Buffer.from(file))
    },
  )

  it('stores an empty file', async context => {
    skipWithout(context, 'emptyFiles')
    await expectStored(trial.setup, await put(objectOf(fresh('empty.txt'), Buffer.alloc(0))), Buffer.alloc(0))
  })

  it('replaces an object with the same key, also by a shorter one', async context => {
    skipWithout(context, 'names')
    const key = fresh('twice.bin')
    await put(objectOf(key, randomBytes(90_000)))
    const bytes = randomBytes(40_000)
    await expectStored(trial.setup, await put(objectOf(key, bytes)), bytes)
  })

  it('does not mix concurrent puts', async () => {
    const objects = Array.from({ length: 8 }, (_, i) => objectOf(fresh(`same.bin`), randomBytes(70_000 + i)))
    const puts: Promise<Stored>[] = []
    for (const object of objects) {
      puts.push(put(object))
      if (trial.setup.target.traits?.serial) await puts.at(-1)
    }
    for (const [i, stored] of (await Promise.all(puts)).entries())
      await expectStored(trial.setup, stored, await bytesOf(objects[i] as UploadObject))
  })

  it('stores one of two concurrent puts with the same key completely', async context => {
    skipWithout(context, 'names')
    const key = fresh('race.bin')
    const objects = [objectOf(key, randomBytes(200_000)), objectOf(key, randomBytes(150_000))]
    const puts = await Promise.allSettled(objects.map(object => put(object)))
    const lostPuts = puts.filter(one => one.status === 'rejected')
    if (trial.setup.target.traits?.atomic) expect(lostPuts).toEqual([])
    // A put that verifies its object may find the other one. It must be retryable then.
    for (const lost of lostPuts)
      expect(lost.reason).toMatchObject({ code: 'destination_failed', retryable: true })
    const stored = puts.find(one => one.status === 'fulfilled')?.value ?? expect.fail('none was stored')
    const found = await trial.setup.fetch(stored)
    const wholes = await Promise.all(objects.map(bytesOf))
    expect(wholes.some(whole => whole.equals(found))).toBe(true)
  })

  it('streams a large file', { timeout: 120_000 }, async context => {
    skipWithout(context, 'largeFiles')
    const object = largeObject(fresh('large.bin'), LARGE_BYTES)
    expect(sha256(await trial.setup.fetch(await put(object)))).toBe(object.sha256)
  })

  it('stores a file and changes neither its bytes nor its mode', async () => {
    await expectFileKept(trial.setup, objectOf(fresh('file.bin'), randomBytes(200_000)), put)
  })

  it('stores a large file and does not change it', { timeout: 120_000 }, async context => {
    skipWithout(context, 'largeFiles')
    await expectFileKept(trial.setup, largeObject(fresh('large-file.bin'), LARGE_BYTES), put)
  })
}
