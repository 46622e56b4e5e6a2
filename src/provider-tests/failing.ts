import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { UploadError } from '../errors.ts'
import { expectStored, isRetried, required, withoutStrayErrors } from './expect.ts'
import { expectCheckRefused } from './far-end.ts'
import { bytesOf, MIB, objectOf, stallingObject, tearingObject } from './objects.ts'
import type { Trial } from './trial.ts'

/** Tests failed uploads: they leave no partial object, explain the reason, and are never reported as stored. */
export function describeFailing(trial: Trial): void {
  const { fresh, put, failureOf, expectNoPartialObject, skipWithout, never, shown } = trial

  const target = () => trial.setup.target
  it.for<[how: string, store: (key: string) => Promise<unknown>]>([
    [
      'it is aborted before the put',
      key => target().put(objectOf(key, randomBytes(10_000)), AbortSignal.abort()),
    ],
    [
      'it is aborted during the put',
      key => {
        const abort = new AbortController()
        return target().put(
          stallingObject(key, () => abort.abort()),
          abort.signal,
        )
      },
    ],
    ['the body fails halfway', key => target().put(tearingObject(key), never())],
  ])('stores nothing when %s', async ([, store]) => {
    const key = fresh('failed.bin')
    await expectNoPartialObject(key, () => withoutStrayErrors(() => failureOf(store(key))))
  })

  it('stores nothing when the connection breaks halfway, and the next put works', async context => {
    skipWithout(context, 'connection')
    const { target, cutAfter, mend } = await required(trial.setup.breakable, 'breakable', 'connection')()
    context.onTestFinished(() => target.close?.())
    const key = fresh('cut.bin')
    await expectNoPartialObject(key, async () => {
      cutAfter(MIB)
      await withoutStrayErrors(async () => {
        const error = await failureOf(target.put(objectOf(key, randomBytes(4 * MIB)), never()))
        expect(isRetried(error)).toBe(true)
        expect(String(error)).not.toContain('on this server')
      })
      mend()
      const again = objectOf(fresh('mended.bin'), randomBytes(4 * MIB))
      await expectStored(trial.setup, await put(again, target), await bytesOf(again))
    })
  })

  it('fails with a message when the credentials are refused', async context => {
    skipWithout(context, 'credentials')
    const bad = await required(trial.setup.withBadCredentials, 'withBadCredentials', 'credentials')()
    context.onTestFinished(() => bad.close?.())
    const error = await failureOf(bad.put(objectOf(fresh('refused.bin'), randomBytes(1000)), never()))
    expect(error).toBeInstanceOf(UploadError)
    shown.push(...(await expectCheckRefused(bad)))
  })
}
