import { readFileSync } from 'node:fs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { collectMarked } from '../../src/options.ts'
import { startCutProxy } from '../../src/provider-tests/cut-proxy.ts'
import { openProvider } from '../../src/provider-tests/open-provider.ts'
import type { Provider, Stored, Target } from '../../src/providers/contract.ts'
import { type Exchange, type Replay, startReplay } from '../servers/replay.ts'
import { listen } from './listen.ts'
import { type ContractSetup, describeProvider, objectOf } from './provider-contract.ts'

export function readExchange(name: string): Exchange {
  return JSON.parse(readFileSync(new URL(`../fixtures/http-hosts/${name}.json`, import.meta.url), 'utf8'))
}

/** A host with what its documentation says, in test/fixtures/http-hosts. */
export interface Preset {
  readonly name: string
  readonly provider: Provider
  /** Options for an API below an address. */
  options(base: string): Record<string, unknown>
  /** What makes its credentials wrong ones; undefined when it needs none. */
  readonly wrong?: Record<string, unknown>
  readonly deleteUrl?: string
}

/** What is secret of a preset, right or wrong. */
function secretsOf({ provider, options, wrong = {} }: Preset): string[] {
  const all = [options('http://127.0.0.1'), { ...options('http://127.0.0.1'), ...wrong }]
  return all.flatMap(one => [...collectMarked(provider.config, provider.config.parse(one), 'secret')])
}

/** The vendor makes up the names of files. */
const NAMES_OF_ITS_OWN = 'hosts of this kind name files themselves and keep every one'

const never = () => new AbortController().signal

/** Opens a provider as the server does. */
export const openHost = openProvider

/** What a visitor gets. */
export async function fetchPublic({ url }: Stored): Promise<Buffer> {
  const response = await fetch(url)
  if (!response.ok) throw new Error(`status ${response.status}`)
  return Buffer.from(await response.arrayBuffer())
}

/** Has a form host join the contract suite, for all of them: they send by the same code. */
export function describeFormHost(preset: Preset): void {
  describeProvider(preset.name, () => startContract(preset, readExchange(preset.name)))
  describePreset(preset)
}

/** Tests a preset at a host that plays the documented exchange, and refuses requests that are not exactly like it. */
export function describePreset(preset: Preset): void {
  const { name, provider, wrong = {} } = preset
  const exchange = readExchange(name)
  const secrets = secretsOf(preset)
  const putTo = async (options: Record<string, unknown>) => {
    const target = await openHost(provider, options)
    onTestFinished(() => target.close?.())
    return target.put(objectOf('a/picture.png', Buffer.from('bytes')), never())
  }

  describe(`${name} and the answers that are documented`, () => {
    it('takes the address of a new file, and the one that removes it', async () => {
      const host = await startReplay()
      onTestFinished(host.close)
      const target = await open(preset, host, exchange)
      const stored = await target.put(objectOf('a/picture.png', Buffer.from('bytes')), never())
      expect(stored).toEqual({
        url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+(\/[a-z]+)+\/[0-9a-f]{16}\b/),
        ...(preset.deleteUrl && {
          deleteUrl: preset.deleteUrl
            .replace('{{base}}', host.url)
            .replace('{{api}}', `${host.url}/replay/e1`),
        }),
      })
      expect((await fetchPublic(stored)).toString()).toBe('bytes')
    })

    const all = [{ name: 'wrong credentials', retryable: false, ...exchange.refusal }, ...exchange.others]
    it.each(all)('$name', async ({ status, body, url, deleteUrl, says, retryable = false }) => {
      const put = putTo({ ...preset.options(await serveReply(status, body)), ...wrong })
      if (url !== undefined) {
        await expect(put).resolves.toEqual({ url, ...(deleteUrl && { deleteUrl }) })
        return
      }
      await expect(put).rejects.toMatchObject({ code: 'destination_failed', retryable })
      await expect(put).rejects.toThrow(says)
      await expect(put).rejects.not.toThrow(/https?:/)
      for (const secret of secrets) await expect(put).rejects.not.toThrow(secret)
    })
  })
}

async function startContract(preset: Preset, exchange: Exchange): Promise<ContractSetup> {
  const host = await startReplay()
  const proxy = await startCutProxy(host.port)
  const { wrong } = preset
  const through = (port: number) => (base: string) => base.replace(`:${host.port}/`, `:${port}/`)
  return {
    target: await open(preset, host, exchange),
    fetch: fetchPublic,
    secrets: secretsOf(preset),
    ...(wrong && { withBadCredentials: () => open(preset, host, exchange, wrong) }),
    breakable: async () => ({
      ...proxy,
      target: await open(preset, host, exchange, {}, through(proxy.port)),
    }),
    forgeable: { port: host.port, open: port => open(preset, host, exchange, {}, through(port)) },
    without: { names: NAMES_OF_ITS_OWN },
    async close() {
      proxy.close()
      await host.close()
    },
  }
}

async function open(
  { provider, options }: Preset,
  host: Replay,
  exchange: Exchange,
  others: Record<string, unknown> = {},
  change = (base: string) => base,
): Promise<Target> {
  return openHost(provider, { ...options(change(await host.replay(exchange))), ...others })
}

/** A server that answers everything in the same way. */
export async function serveReply(
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<string> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const { url, close } = await listen((request, response) => {
    request.resume().on('end', () => response.writeHead(status, headers).end(text))
  })
  onTestFinished(close)
  return url
}
