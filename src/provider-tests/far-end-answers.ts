import { randomBytes } from 'node:crypto'
import { it } from 'vitest'
import { putInSilence, withoutStrayErrors } from './expect.ts'
import { expectRefusal, expectSteps } from './far-end.ts'
import { objectOf } from './objects.ts'
import type { Trial } from './trial.ts'
import { expectTrueChecks, expectTrueFinds, expectTruePuts } from './untrue-answers.ts'

/** Whatever the far end says or does not say: it is believed only when it is true. */
export function describeFarEnd(trial: Trial): void {
  const { fresh, failureOf, farEndIn, forgeableIn, skipWithout, leaveOut, newUntrue } = trial

  it('fails in words where nothing listens', async context => {
    const object = objectOf(fresh('a b/closed.bin'), randomBytes(1000))
    await withoutStrayErrors(() => expectRefusal(farEndIn(context), object))
  })

  it('survives a far end that breaks off at any step', { timeout: 120_000 }, async context => {
    const newObject = () => objectOf(fresh('step.bin'), randomBytes(1000))
    await withoutStrayErrors(() => expectSteps(farEndIn(context), newObject))
  })

  it('takes no answer for stored that does not say so', { timeout: 120_000 }, async context => {
    skipWithout(context, 'proof')
    await expectTruePuts(forgeableIn(context), newUntrue, trial.setup.fetch)
  })

  it('takes no answer for found or removed that does not say so', { timeout: 120_000 }, async context => {
    if (!trial.setup.target.exists && !trial.setup.target.remove) leaveOut(context, '"exists" and "remove"')
    await expectTrueFinds(forgeableIn(context), trial.setup.target, newUntrue, trial.setup.fetch)
  })

  it('passes no check where nothing true is answered', { timeout: 60_000 }, async context => {
    if (!trial.setup.target.check) leaveOut(context, '"check"')
    await expectTrueChecks(forgeableIn(context))
  })

  it('ends with its signal where nothing is answered at all', async context => {
    const forgeable = forgeableIn(context)
    const aborted = () => putInSilence(forgeable, objectOf(fresh('silence.bin'), randomBytes(1000)))
    await withoutStrayErrors(async () => void (await failureOf(aborted())))
  })
}
