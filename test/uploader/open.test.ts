import { describe, expect, it } from 'vitest'
import * as z from '../../src/packages/zod.ts'
import { defineProvider, type Target } from '../../src/providers/contract.ts'
import type { DestinationSpec } from '../../src/uploader/destinations.ts'
import { createPutQueues, openDestinations, openTarget } from '../../src/uploader/open.ts'
import { objectOf } from '../helpers/provider-contract.ts'

describe('openDestinations', () => {
  const target: Target = { put: async ({ key }) => ({ url: `files/x/${key}` }) }

  function spec(
    name: string,
    made: Target,
    common: Partial<DestinationSpec['common']> = {},
  ): DestinationSpec {
    const provider = defineProvider({ type: 'test', config: z.object({}), open: () => made })
    const all = { onConflict: 'replace', dedupe: false, ...common } as const
    return { type: 'test', name, provider, options: {}, common: all }
  }

  const openAll = (...specs: DestinationSpec[]) => openDestinations(specs, '{filename}', () => {})

  it('gives each its own template, or the common one', async () => {
    const own = spec('own', target, { keyTemplate: '{uuid}' })
    const [first, second] = await openAll(spec('common', target), own)
    expect(first).toMatchObject({
      type: 'test',
      name: 'common',
      isContentKey: false,
      queue: undefined,
    })
    expect(second).toMatchObject({ name: 'own', isContentKey: true })
  })

  it('shares putQueues with destinations of the same name, and with no others', async () => {
    const serial = { ...target, traits: { serial: true } }
    const putQueues = createPutQueues()
    const open = (...names: string[]) =>
      openDestinations(
        names.map(name => spec(name, serial)),
        '{filename}',
        () => {},
        { putQueues },
      )
    const [one, two] = await open('one', 'two')
    const [after] = await open('one')
    const { signal } = new AbortController()
    let leave = () => {}
    const first = one?.queue?.run(
      () =>
        new Promise<void>(resolve => {
          leave = resolve
        }),
      signal,
    )
    let isThere = false
    const second = after?.queue?.run(async () => {
      isThere = true
    }, signal)
    await two?.queue?.run(async () => {}, signal)
    expect(isThere).toBe(false)
    leave()
    await Promise.all([first, second])
    expect(isThere).toBe(true)
  })

  it.each(['rename', 'error'] as const)(
    'refuses onConflict "%s" for a target that cannot tell what is there',
    async onConflict => {
      await expect(openAll(spec('one', target, { onConflict }))).rejects.toThrow(
        /^test\/one: onConflict .*can check whether an object exists\.$/,
      )
    },
  )

  it('closes what was opened when another one can not be', async () => {
    const closed: string[] = []
    const open = (name: string) => spec(name, { ...target, close: async () => void closed.push(name) })
    const broken: DestinationSpec = {
      ...open('broken'),
      provider: { ...open('broken').provider, open: async () => Promise.reject(new Error('no luck')) },
    }
    await expect(openAll(open('one'), broken)).rejects.toThrow('no luck')
    const unable = spec(
      'unable',
      { ...target, close: async () => void closed.push('unable') },
      { dedupe: true },
    )
    await expect(openAll(open('two'), unable)).rejects.toThrow('dedupe')
    expect(closed).toEqual(['one', 'two', 'unable'])
  })

  it.each([
    ['nothing', undefined, 'its "open" must return an object with the function "put"'],
    ['no put', { exists: async () => true }, 'its "open" must return an object with the function "put"'],
  ])('names a provider whose open returns %s', async (_, made, reason) => {
    const wrong = { ...spec('one', made as unknown as Target), plugin: './mine.mjs' }
    await expect(openAll(wrong)).rejects.toThrow(
      `test/one can't be opened by the plugin "./mine.mjs": ${reason}`,
    )
  })

  it.each([undefined, '', 5, '//x.example/a', 'a.png', 'ftp://x.example/a', 'javascript:alert(1)'])(
    'takes no %j for a link, which pages and editors would show',
    async url => {
      const wrong = { put: async () => ({ url }) } as unknown as Target
      const [one] = await openAll(spec('one', wrong))
      const put = one?.target.put(objectOf('a.png', Buffer.of(1)), new AbortController().signal)
      await expect(put).rejects.toThrow(
        /Could not store "a\.png" at .*: the provider returned .* instead of an http/,
      )
    },
  )

  it.each([
    [new TypeError('no luck'), 'TypeError: no luck', false],
    [null, 'it threw a value that is not an error: null', false],
    [Object.assign(new Error('x'), { code: 'ECONNRESET' }), 'it closed the connection', true],
    [new Error('Sent Authorization: Bearer abc'), 'Sent Authorization: \\[hidden\\]', false],
  ])('says where %s comes from, when it is thrown by what is asked', async (thrown, reason, retryable) => {
    const broken = () => Promise.reject(thrown)
    const stub = { ...target, exists: broken, remove: broken, sign: broken }
    const [one] = await openAll(spec('one', stub))
    const { signal } = new AbortController()
    for (const [what, work] of [
      ['look for', one?.target.exists?.('a', signal)],
      ['remove', one?.target.remove?.('a', signal)],
      ['sign a link to', one?.target.sign?.('a', 'GET', 1, signal)],
    ] as const)
      await expect(work).rejects.toMatchObject({
        code: 'destination_failed',
        message: expect.stringMatching(new RegExp(`^Could not ${what} "a" at test/one: ${reason}\\. `)),
        retryable,
      })
  })

  it('does not wait for ever', async () => {
    const { provider, ...rest } = spec('one', target)
    const slow = { ...rest, provider: { ...provider, open: () => new Promise<Target>(() => {}) } }
    await expect(openTarget(slow, { name: 'one', warn: () => {} }, 20)).rejects.toThrow(
      `test/one can't be opened: it was not opened within 0.02 s. Correct "providers.test.one", or remove it.`,
    )
  })

  it('takes what the class of a target has', async () => {
    class Shelf {
      #word = 'closed'
      async put() {
        return { url: 'https://img.example/a' }
      }
      async check() {
        throw new Error('checked')
      }
      async close() {
        throw new Error(this.#word)
      }
    }
    const [one] = await openAll(spec('one', new Shelf()))
    const { signal } = new AbortController()
    await expect(one?.target.check?.(signal)).rejects.toThrow('checked')
    await expect(one?.target.close?.()).rejects.toThrow('closed')
  })
})
