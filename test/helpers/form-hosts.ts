import { readFileSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { collectMarked } from '../../src/options.ts'
import type { Provider } from '../../src/providers/contract.ts'
import { type Exchange, startFormHost } from '../servers/form-host.ts'
import { play } from './player.ts'
import { contractAt, describeProvider } from './provider-contract.ts'
import { fetchPublic, type Options, open, openTarget, put } from './target.ts'

/** A host with what its documentation says, in test/fixtures/http-hosts. */
export interface Preset {
  readonly name: string
  readonly provider: Provider
  /** Options for an API below a URL. */
  options(base: string): Options
  /** What makes its credentials wrong ones; undefined when it needs none. */
  readonly wrong?: Options
  readonly deleteUrl?: string
}

function readExchange(name: string): Exchange {
  return JSON.parse(readFileSync(new URL(`../fixtures/http-hosts/${name}.json`, import.meta.url), 'utf8'))
}

/** What is secret of a preset, right or wrong. */
function secretsOf({ provider, options, wrong = {} }: Preset): string[] {
  const all = [options('http://127.0.0.1'), { ...options('http://127.0.0.1'), ...wrong }]
  return all.flatMap(one => [...collectMarked(provider.config, provider.config.parse(one), 'secret')])
}

/** Has a form host join the contract suite, for all of them: they send by the same code. */
export function describeFormHost(preset: Preset): void {
  const { name, provider, options, wrong: bad = {} } = preset
  describeProvider(name, async () => {
    const host = await startFormHost(readExchange(name))
    const openAt = (port: number, others?: Options) =>
      openTarget(provider, { ...options(`http://127.0.0.1:${port}`), ...others })
    const without = { names: 'hosts of this kind name files themselves and keep every one' }
    return contractAt(host, openAt, { bad, secrets: secretsOf(preset), without })
  })
  describePreset(preset)
}

/** Tests a preset at a host that plays the documented exchange. */
export function describePreset(preset: Preset): void {
  const { name, provider, options, wrong = {} } = preset
  const exchange = readExchange(name)

  describe(`${name} and the answers that are documented`, () => {
    it('takes the address of a new file, and the one that removes it', async () => {
      const host = await startFormHost(exchange)
      onTestFinished(host.close)
      const target = await open(provider, options(host.url))
      const stored = await put(target, 'a/picture.png').catch(error =>
        expect.fail(host.difference() || error),
      )
      expect(stored).toEqual({
        url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+(\/[a-z]+)+\/[0-9a-f]{16}\b/),
        ...(preset.deleteUrl && { deleteUrl: preset.deleteUrl.replace('{{base}}', host.url) }),
      })
      expect((await fetchPublic(stored)).toString()).toBe('bytes')
    })

    const all = [{ name: 'wrong credentials', retryable: false, ...exchange.refusal }, ...exchange.others]
    it.each(all)('$name', async ({ url, deleteUrl, says, retryable = false, ...answer }) => {
      const host = await play(answer)
      const putting = put(await open(provider, { ...options(host.url), ...wrong }), 'a/picture.png')
      if (url !== undefined)
        return void (await expect(putting).resolves.toEqual({ url, ...(deleteUrl && { deleteUrl }) }))
      await expect(putting).rejects.toMatchObject({ code: 'destination_failed', retryable })
      await expect(putting).rejects.toThrow(says)
      for (const hidden of [/https?:/, ...secretsOf(preset)])
        await expect(putting).rejects.not.toThrow(hidden)
    })
  })
}
