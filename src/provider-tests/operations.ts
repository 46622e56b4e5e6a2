import { randomBytes } from 'node:crypto'
import { expect, it, onTestFinished } from 'vitest'
import type { Stored } from '../providers/contract.ts'
import { expectCleanUrl, expectNoSecrets, required } from './expect.ts'
import { bytesOf, objectOf, REFUSED_KEYS } from './objects.ts'
import type { Trial } from './trial.ts'

/** Tests the optional operations of a target, and what a target must never do. */
export function describeOperations(trial: Trial): void {
  const { fresh, put, skipWithout, skipUnsupported, never, shown } = trial

  it('reports whether an object exists, and removes it', async context => {
    const { target, fetch: fetchBack } = trial.setup
    if (!target.exists || !target.remove) skipUnsupported(context, target.exists ? '"remove"' : '"exists"')
    const key = fresh('a b/removed.bin')
    const expectFound = (found: boolean) => expect(target.exists?.(key, never())).resolves.toBe(found)
    await expectFound(false)
    const stored = await put(objectOf(key, randomBytes(1000)))
    await expectFound(true)
    await target.remove?.(key, never())
    await expectFound(false)
    await expect(fetchBack(stored)).rejects.toThrow()
  })

  it('removes several objects concurrently as expiry does, and no other objects', async context => {
    const { target, fetch: fetchBack } = trial.setup
    if (!target.remove) skipUnsupported(context, '"remove"')
    const [folder, content] = [fresh('sweep'), randomBytes(1000)]
    const removed = ['a.bin', 'b.bin', 'c.bin', 'd.bin'].map(name => objectOf(`${folder}/${name}`, content))
    const stored: Stored[] = []
    for (const object of removed) stored.push(await put(object))
    const kept = await put(objectOf(`${folder}/kept.bin`, content))
    await Promise.all([...removed, ...removed].map(({ key }) => target.remove?.(key, never())))
    for (const one of stored) await expect(fetchBack(one)).rejects.toThrow()
    const again = await put(objectOf(`${folder}/a.bin`, content))
    for (const one of [kept, again]) expect((await fetchBack(one)).equals(content)).toBe(true)
  })

  it('removes a missing object without an error', async context => {
    if (!trial.setup.target.remove) skipUnsupported(context, '"remove"')
    await trial.setup.target.remove?.(fresh('absent.bin'), never())
  })

  it.for(REFUSED_KEYS)('rejects an invalid object key before it sends a request: %s', async ([, key]) => {
    const { put, remove, exists, sign } = trial.setup.target
    const operations = [
      put(objectOf(key, Buffer.from('x')), never()),
      remove?.(key, never()),
      exists?.(key, never()),
      sign?.(key, 'GET', 60, never()),
    ].filter(operation => operation !== undefined)
    const refusal = {
      code: 'destination_failed',
      message: expect.stringContaining('object key is invalid'),
    }
    for (const operation of operations) await expect(operation).rejects.toMatchObject(refusal)
  })

  it.for(['GET', 'HEAD'] as const)('signs a URL that opens an object by %s', async (method, context) => {
    const { sign, traits } = trial.setup.target
    if (!sign) skipUnsupported(context, '"sign"')
    const object = objectOf(fresh("ü b/it's (1).png"), randomBytes(1000))
    await put(object)
    const { url, forS } = (await sign?.(object.key, method, 60, never())) ?? expect.fail('nothing was signed')
    shown.push(url)
    expectCleanUrl(url)
    expect(forS).toBe(60)
    const response = await fetch(url, { method })
    expect(response.status).toBe(200)
    const body = Buffer.from(await response.arrayBuffer())
    expect(body.equals(method === 'HEAD' ? Buffer.alloc(0) : await bytesOf(object))).toBe(true)
    // The same URL without its signature.
    if (traits?.linksExpire) expect((await fetch(url.replace(/\?.*/s, ''))).ok).toBe(false)
  })

  it('passes its own check, twice', async context => {
    if (!trial.setup.target.check) skipUnsupported(context, '"check"')
    await trial.setup.target.check?.(never())
    await trial.setup.target.check?.(never())
  })

  it('has a "location" without secrets that does not depend on the credentials', async () => {
    const { target, without, withBadCredentials } = trial.setup
    const { location } = target
    expect(location).toMatch(/^[a-z][\w+.-]*[:/].*\/$/s)
    if (without?.credentials !== undefined) return
    const other = await required(withBadCredentials, 'withBadCredentials', 'credentials')()
    onTestFinished(() => other.close?.())
    expect(other.location).toBe(location)
    expectNoSecrets(trial.setup, String(location))
  })

  it('shows no configured secret in any URL or error message of this suite', context => {
    skipWithout(context, 'credentials')
    expectNoSecrets(trial.setup, shown.join('\n'))
  })
}
