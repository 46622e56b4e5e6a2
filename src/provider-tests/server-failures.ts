import { randomBytes } from 'node:crypto'
import { createServer, type Socket } from 'node:net'
import { it, onTestFinished } from 'vitest'
import { withoutStrayErrors } from './expect.ts'
import { expectSteps, expectUnreachable } from './far-end.ts'
import { expectConfirmedChecks, expectConfirmedLookups, expectConfirmedPuts } from './forged-responses.ts'
import { listen } from './listen.ts'
import { objectOf } from './objects.ts'
import type { Trial } from './trial.ts'

/** Tests unreachable servers, broken connections, and responses that do not come from the service. */
export function describeServerFailures(trial: Trial): void {
  const { fresh, failureOf, farEndIn, forgeableIn, skipWithout, skipUnsupported, newForged } = trial

  it('explains that nothing listens on the port', async context => {
    const object = objectOf(fresh('a b/closed.bin'), randomBytes(1000))
    await withoutStrayErrors(() => expectUnreachable(farEndIn(context), object))
  })

  it('survives a connection that is closed at any step', { timeout: 120_000 }, async context => {
    const newObject = () => objectOf(fresh('step.bin'), randomBytes(1000))
    await withoutStrayErrors(() => expectSteps(farEndIn(context), newObject))
  })

  it('does not report an object as stored when the response does not confirm it', {
    timeout: 120_000,
  }, async context => {
    skipWithout(context, 'proof')
    await expectConfirmedPuts(forgeableIn(context), newForged, trial.setup.fetch)
  })

  it('does not report an object as found or removed when the response does not confirm it', {
    timeout: 120_000,
  }, async context => {
    if (!trial.setup.target.exists && !trial.setup.target.remove)
      skipUnsupported(context, '"exists" and "remove"')
    await expectConfirmedLookups(forgeableIn(context), trial.setup.target, newForged, trial.setup.fetch)
  })

  it('fails its check when no response comes from the service', { timeout: 60_000 }, async context => {
    if (!trial.setup.target.check) skipUnsupported(context, '"check"')
    await expectConfirmedChecks(forgeableIn(context))
  })

  it('ends with its signal when the server never responds', async context => {
    const sockets = new Set<Socket>()
    const abort = new AbortController()
    const server = createServer(socket => {
      sockets.add(socket.on('error', () => {}))
      socket.once('data', () => abort.abort()).resume()
    })
    const target = await forgeableIn(context).open(await listen(server))
    onTestFinished(async () => {
      await target.close?.()
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    const put = () => target.put(objectOf(fresh('silence.bin'), randomBytes(1000)), abort.signal)
    await withoutStrayErrors(async () => void (await failureOf(put())))
  })
}
