import { randomBytes } from 'node:crypto'
import { it } from 'vitest'
import {
  expectKeyRefused,
  expectNoSecrets,
  expectPlace,
  expectRemoved,
  expectSigned,
  expectSwept,
} from './expect.ts'
import { objectOf, REFUSED_KEYS } from './objects.ts'
import type { Trial } from './trial.ts'

/** What a target can do beside storing, and what it must never do. */
export function describeOperations(trial: Trial): void {
  const { fresh, put, skipWithout, leaveOut, never, shown } = trial

  it('tells what is there, and removes it', async context => {
    const { exists, remove } = trial.setup.target
    if (!exists || !remove) leaveOut(context, exists ? '"remove"' : '"exists"')
    await expectRemoved(trial.setup, fresh('a b/removed.bin'), put)
  })

  it('removes several side by side as a sweep does, and nothing beside them', async context => {
    if (!trial.setup.target.remove) leaveOut(context, '"remove"')
    await expectSwept(trial.setup, fresh('sweep'), put)
  })

  it('removes without a word what is not there', async context => {
    if (!trial.setup.target.remove) leaveOut(context, '"remove"')
    await trial.setup.target.remove?.(fresh('absent.bin'), never())
  })

  it.for(REFUSED_KEYS)('refuses a key that is none before anything is asked or sent: %s', async ([, key]) => {
    await expectKeyRefused(trial.setup.target, key)
  })

  it.for(['GET', 'HEAD'] as const)(
    'signs an address that opens what is there by %s',
    async (method, context) => {
      if (!trial.setup.target.sign) leaveOut(context, '"sign"')
      const object = objectOf(fresh("ü b/it's (1).png"), randomBytes(1000))
      await put(object)
      shown.push(await expectSigned(trial.setup.target, object, method))
    },
  )

  it('passes its own check, twice', async context => {
    if (!trial.setup.target.check) leaveOut(context, '"check"')
    await trial.setup.target.check?.(never())
    await trial.setup.target.check?.(never())
  })

  it('says where its objects lie, whoever logs in, without a secret', () => expectPlace(trial.setup))
  it('shows no configured secret in any URL or error message of this suite', context => {
    skipWithout(context, 'credentials')
    expectNoSecrets(trial.setup, shown.join('\n'))
  })
}
