import { randomBytes } from 'node:crypto'
import { it } from 'vitest'
import {
  expectKeyRefused,
  expectNoSecrets,
  expectRemoved,
  expectSigned,
  expectStablePlace,
  expectSwept,
} from './expect.ts'
import { objectOf, REFUSED_KEYS } from './objects.ts'
import type { Trial } from './trial.ts'

/** Tests the optional operations of a target, and what a target must never do. */
export function describeOperations(trial: Trial): void {
  const { fresh, put, skipWithout, skipUnsupported, never, shown } = trial

  it('reports whether an object exists, and removes it', async context => {
    const { exists, remove } = trial.setup.target
    if (!exists || !remove) skipUnsupported(context, exists ? '"remove"' : '"exists"')
    await expectRemoved(trial.setup, fresh('a b/removed.bin'), put)
  })

  it('removes several objects concurrently as expiry does, and no other objects', async context => {
    if (!trial.setup.target.remove) skipUnsupported(context, '"remove"')
    await expectSwept(trial.setup, fresh('sweep'), put)
  })

  it('removes a missing object without an error', async context => {
    if (!trial.setup.target.remove) skipUnsupported(context, '"remove"')
    await trial.setup.target.remove?.(fresh('absent.bin'), never())
  })

  it.for(REFUSED_KEYS)('rejects an invalid object key before it sends a request: %s', async ([, key]) => {
    await expectKeyRefused(trial.setup.target, key)
  })

  it.for(['GET', 'HEAD'] as const)('signs a URL that opens an object by %s', async (method, context) => {
    if (!trial.setup.target.sign) skipUnsupported(context, '"sign"')
    const object = objectOf(fresh("ü b/it's (1).png"), randomBytes(1000))
    await put(object)
    shown.push(await expectSigned(trial.setup.target, object, method))
  })

  it('passes its own check, twice', async context => {
    if (!trial.setup.target.check) skipUnsupported(context, '"check"')
    await trial.setup.target.check?.(never())
    await trial.setup.target.check?.(never())
  })

  it('has a "location" without secrets that does not depend on the credentials', () =>
    expectStablePlace(trial.setup))
  it('shows no configured secret in any URL or error message of this suite', context => {
    skipWithout(context, 'credentials')
    expectNoSecrets(trial.setup, shown.join('\n'))
  })
}
