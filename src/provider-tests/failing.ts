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

  it('stores nothing when it is aborted before the put', async () => {
    const key = fresh('aborted.bin')
    await expectNoPartialObject(key, () =>
      withoutStrayErrors(() =>
        failureOf(trial.setup.target.put(objectOf(key, randomBytes(10_000)), AbortSignal.abort())),
      ),
    )
  })

  it('stores nothing when it is aborted during the put', async () => {
    const key = fresh('stalled.bin')
    await expectNoPartialObject(key, () =>
      withoutStrayErrors(async () => {
        const abort = new AbortController()
        const object = stallingObject(key, () => abort.abort())
        await failureOf(trial.setup.target.put(object, abort.signal))
      }),
    )
  })

  it('stores nothing when the body fails halfway', async () => {
    const key = fresh('torn.bin')
    await expectNoPartialObject(key, () =>
      withoutStrayErrors(() => failureOf(trial.setup.target.put(tearingObject(key), never()))),
    )
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
