import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it, type TestContext } from 'vitest'
import type { Stored, UploadObject } from '../providers/contract.ts'
import {
  expectCleanUrl,
  expectFileKept,
  expectKeyRefused,
  expectNoSecrets,
  expectOneWhole,
  expectRemoved,
  expectSigned,
  expectStored,
  expectSwept,
  given,
  mayPass,
  putInSilence,
  withoutStrayErrors,
} from './expect.ts'
import { watchMemory } from './memory.ts'
import { largeObject, MIB, objectOf, sha256, stallingObject, tearingObject } from './objects.ts'
import type { Absence, ContractSetup } from './setup.ts'
import { expectTrueChecks, expectTrueFinds, expectTruePuts, type Forgeable } from './untrue-answers.ts'

/** What a put of 64 MiB may hold at once: less than the body, more than the parts an SDK keeps in flight. */
const MEMORY_BOUND_BYTES = 48 * MIB

/**
 * Registers the suite that says what a provider is. Every provider joins it, against a real server.
 *
 * @param unavailable why it can't run here, as a phrase: reported as skipped, and under CI=true as failed
 */
export function describeProvider(
  name: string,
  start: () => ContractSetup | Promise<ContractSetup>,
  unavailable?: string,
): void {
  describe(`${name} keeps the contract of providers`, () => {
    const folder = `contract-${randomBytes(4).toString('hex')}`
    const shown: string[] = []
    let setup: ContractSetup

    beforeAll(async () => {
      if (unavailable === undefined) setup = await start()
    })
    beforeEach(context => {
      if (unavailable === undefined) return
      if (process.env['CI'] === 'true') throw new Error(unavailable)
      context.skip(unavailable)
    })
    afterAll(async () => {
      if (unavailable !== undefined) return
      await setup.target.close?.()
      await setup.close()
    })

    const fresh = (file: string): string => `${folder}/${randomBytes(4).toString('hex')}/${file}`
    const newUntrue = () => objectOf(fresh('untrue/a.bin'), randomBytes(1000))
    const never = () => new AbortController().signal

    async function put(object: UploadObject, target = setup.target): Promise<Stored> {
      const stored = await target.put(object, never())
      shown.push(stored.url)
      expectCleanUrl(stored.url)
      return stored
    }

    async function putWatched(object: UploadObject): Promise<Stored> {
      const { result, peakBytes } = await watchMemory(() => put(object))
      expect(peakBytes).toBeLessThan(MEMORY_BOUND_BYTES)
      return result
    }

    /** The error of a put that has to fail. */
    async function failureOf(promise: Promise<unknown>): Promise<unknown> {
      const error = await promise.then(
        () => expect.fail('this should have failed'),
        (reason: unknown) => reason,
      )
      shown.push(error instanceof Error ? error.message : String(error))
      return error
    }

    /** `object` fails halfway; what was under its key before stays, and the next put works. */
    async function expectNothingHalf(key: string, fail: () => Promise<unknown>): Promise<void> {
      const hasNames = setup.without?.names === undefined
      const before = hasNames ? objectOf(key, randomBytes(3000)) : undefined
      const stored = before && (await put(before))
      await fail()
      if (stored) await expectStored(setup, stored, await before.bytes())
      const after = objectOf(key, randomBytes(5000))
      await expectStored(setup, await put(after), await after.bytes())
    }

    it('stores exactly the bytes, 0x00 and 0xff among them', async () => {
      const every = Buffer.from(Uint8Array.from({ length: 256 }, (_, i) => i))
      const [first, last] = [Buffer.from('00ff000d0a1a', 'hex'), Buffer.from('ff00', 'hex')]
      const bytes = Buffer.concat([first, every, randomBytes(100_000), last])
      await expectStored(setup, await put(objectOf(fresh('bytes.bin'), bytes)), bytes)
    })

    it.for([
      'plain.png',
      'über ordner/日本語/смайл 😀.png',
      'a b#c?d%25e&f.png',
      "it's (1) [2] {3} *!+@,;=$~^`.png",
      '%2e%2e.png',
      'no extension',
      `${'long'.repeat(45)}.png`,
    ])(
      'answers with a URL that is its own normal form and decodes back to the key: %s',
      async (file, context) => {
        skipWithout(context, 'names')
        const key = fresh(file)
        const bytes = Buffer.from(`these are the bytes of ${file}`)
        const stored = await put(objectOf(key, bytes, 'image/png'))
        const { pathname } = new URL(stored.url, 'http://127.0.0.1/')
        expect(`${pathname.split('/').map(decodeURIComponent).join('/')}\n`).toContain(`/${key}\n`)
        await expectStored(setup, stored, bytes)
      },
    )

    it('stores an empty file', async context => {
      skipWithout(context, 'emptyFiles')
      await expectStored(setup, await put(objectOf(fresh('empty.txt'), Buffer.alloc(0))), Buffer.alloc(0))
    })

    it('replaces what has the same key, also by something shorter', async context => {
      skipWithout(context, 'names')
      const key = fresh('twice.bin')
      await put(objectOf(key, randomBytes(90_000)))
      const bytes = randomBytes(40_000)
      await expectStored(setup, await put(objectOf(key, bytes)), bytes)
    })

    it('does not mix puts that run at once', async () => {
      const objects = Array.from({ length: 8 }, (_, i) =>
        objectOf(fresh(`same.bin`), randomBytes(70_000 + i)),
      )
      const stored = await together(objects)
      for (const [i, object] of objects.entries())
        await expectStored(setup, stored[i] as Stored, await object.bytes())
    })

    it('keeps one of two puts whole when both have the same key at once', async context => {
      skipWithout(context, 'names')
      await expectOneWhole(setup, fresh('race.bin'), put)
    })

    it('streams 64 MiB with bounded memory', { timeout: 120_000 }, async context => {
      skipWithout(context, 'largeFiles')
      const object = largeObject(fresh('large.bin'))
      expect(sha256(await setup.fetch(await putWatched(object)))).toBe(object.sha256)
    })

    it('takes a file, and leaves it as it is, mode and all', async () => {
      await expectFileKept(setup, objectOf(fresh('file.bin'), randomBytes(200_000)), put)
    })

    it('takes 64 MiB that lie in a file, and leaves it as it is', { timeout: 120_000 }, async context => {
      skipWithout(context, 'largeFiles')
      await expectFileKept(setup, largeObject(fresh('large-file.bin')), putWatched)
    })

    it('stores nothing when it is aborted before the put', async () => {
      const key = fresh('aborted.bin')
      await expectNothingHalf(key, () =>
        withoutStrayErrors(() =>
          failureOf(setup.target.put(objectOf(key, randomBytes(10_000)), AbortSignal.abort())),
        ),
      )
    })

    it('stores nothing when it is aborted during the put', async () => {
      const key = fresh('stalled.bin')
      await expectNothingHalf(key, () =>
        withoutStrayErrors(async () => {
          const abort = new AbortController()
          const object = stallingObject(key, () => abort.abort())
          await failureOf(setup.target.put(object, abort.signal))
        }),
      )
    })

    it('stores nothing when the body breaks off halfway', async () => {
      const key = fresh('torn.bin')
      await expectNothingHalf(key, () =>
        withoutStrayErrors(() => failureOf(setup.target.put(tearingObject(key), never()))),
      )
    })

    it('stores nothing when the connection breaks halfway, and the next put works', async context => {
      skipWithout(context, 'connection')
      const { target, cutAfter, mend } = await given(setup.breakable, 'breakable', 'connection')()
      context.onTestFinished(() => target.close?.())
      const key = fresh('cut.bin')
      await expectNothingHalf(key, async () => {
        cutAfter(MIB)
        await withoutStrayErrors(async () => {
          const error = await failureOf(target.put(objectOf(key, randomBytes(4 * MIB)), never()))
          expect(mayPass(error)).toBe(true)
          expect(String(error)).not.toContain('on this server')
        })
        mend()
        const again = objectOf(fresh('mended.bin'), randomBytes(4 * MIB))
        await expectStored(setup, await put(again, target), await again.bytes())
      })
    })

    it('takes no answer for stored that does not say so', { timeout: 120_000 }, async context => {
      skipWithout(context, 'proof')
      await expectTruePuts(forgeableIn(context), newUntrue, setup.fetch)
    })

    it('takes no answer for found or removed that does not say so', { timeout: 120_000 }, async context => {
      if (!setup.target.exists && !setup.target.remove) leaveOut(context, '"exists" and "remove"')
      await expectTrueFinds(forgeableIn(context), setup.target, newUntrue, setup.fetch)
    })

    it('passes no check where nothing true is answered', { timeout: 60_000 }, async context => {
      if (!setup.target.check) leaveOut(context, '"check"')
      await expectTrueChecks(forgeableIn(context))
    })

    it('ends with its signal where nothing is answered at all', async context => {
      const forgeable = forgeableIn(context)
      const aborted = () => putInSilence(forgeable, objectOf(fresh('silence.bin'), randomBytes(1000)))
      await withoutStrayErrors(async () => void (await failureOf(aborted())))
    })

    it('fails with a message when the credentials are refused', async context => {
      skipWithout(context, 'credentials')
      const bad = await given(setup.withBadCredentials, 'withBadCredentials', 'credentials')()
      context.onTestFinished(() => bad.close?.())
      const error = await failureOf(bad.put(objectOf(fresh('refused.bin'), randomBytes(1000)), never()))
      expect(error).toBeInstanceOf(Error)
      expect((error as Error).message).not.toBe('')
      if (bad.check) await failureOf(bad.check(never()))
    })

    it('tells what is there, and removes it', async context => {
      const { exists, remove } = setup.target
      if (!exists || !remove) leaveOut(context, exists ? '"remove"' : '"exists"')
      await expectRemoved(setup, fresh('a b/removed.bin'), put)
    })

    it('removes several side by side as a sweep does, and nothing beside them', async context => {
      if (!setup.target.remove) leaveOut(context, '"remove"')
      await expectSwept(setup, fresh('sweep'), put)
    })

    it('removes without a word what is not there', async context => {
      if (!setup.target.remove) leaveOut(context, '"remove"')
      await setup.target.remove?.(fresh('absent.bin'), never())
    })

    it.for([
      ['an empty one', ''],
      ['an absolute one', '/a.bin'],
      ['that of a folder', 'folder/'],
      ['one with an empty name', 'a//b.bin'],
      ['one with "."', 'a/./b.bin'],
      ['one that leads out', '../a.bin'],
      ['one that leads up', 'a/../../b.bin'],
      ['one with a line break', 'a\r\nb.bin'],
      ['one with NUL', 'a\0.bin'],
      ['one with half a character', 'a\ud800.bin'],
      ['one too long', `${'a/'.repeat(512)}b`],
    ] as const)('refuses a key that is none before anything is asked or sent: %s', async ([, key]) => {
      await expectKeyRefused(setup.target, key)
    })

    it.for(['GET', 'HEAD'] as const)(
      'signs an address that opens what is there by %s',
      async (method, context) => {
        if (!setup.target.sign) leaveOut(context, '"sign"')
        const object = objectOf(fresh("ü b/it's (1).png"), randomBytes(1000))
        await put(object)
        shown.push(await expectSigned(setup.target, object, method))
      },
    )

    it('passes its own check, twice', async context => {
      if (!setup.target.check) leaveOut(context, '"check"')
      await setup.target.check?.(never())
      await setup.target.check?.(never())
    })

    it('shows no configured secret in any URL or error message of this suite', context => {
      skipWithout(context, 'credentials')
      expect(shown).not.toHaveLength(0)
      expectNoSecrets(setup, shown.join('\n'))
    })

    /** Where answers can be forged; else the test is skipped. */
    function forgeableIn(context: TestContext): Forgeable {
      skipWithout(context, 'connection')
      skipWithout(context, 'http')
      return given(setup.forgeable, 'forgeable', 'http')
    }

    function skipWithout(context: TestContext, absence: Absence): void {
      const reason = setup.without?.[absence]
      if (reason !== undefined) leaveOut(context, `${absence}: ${reason}`)
    }

    /** What the protocol or vendor cannot do, no package would add: such a test is skipped with its reason, in CI, too. */
    function leaveOut(context: TestContext, what: string): never {
      return context.skip(`${name} leaves out ${what}`)
    }

    async function together(objects: readonly UploadObject[]): Promise<Stored[]> {
      if (!setup.target.serial) return Promise.all(objects.map(object => put(object)))
      const stored: Stored[] = []
      for (const object of objects) stored.push(await put(object))
      return stored
    }
  })
}
