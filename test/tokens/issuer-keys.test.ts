import type { RequestListener } from 'node:http'
import { describe, expect, it } from 'vitest'
import { createOutgoing, DIRECT } from '../../src/http/proxy/outgoing.ts'
import { fetchKeys } from '../../src/tokens/issuer-keys.ts'
import { isSafeUrl } from '../../src/tokens/presets.ts'
import { makeKey, startKeyServer } from '../servers/key-server.ts'

const key = await makeKey('ES256')
const { signal } = new AbortController()
const ofIssuer = (at: string) => ({ kind: 'discovery', at }) as const

it('keys are found at a URL, or by discovery', async () => {
  const server = await startKeyServer([key])
  for (const place of [{ kind: 'url', at: `${server.url}/certs` } as const, ofIssuer(server.url)])
    expect(await fetchKeys(place, DIRECT, signal)).toEqual({ keys: [key.jwk] })
  expect(server.asked).toEqual(['/certs', '/.well-known/openid-configuration', '/jwks'])
})

it('the outbound proxy is used', async () => {
  const proxy = await startKeyServer([key])
  const outgoing = createOutgoing({ proxy: proxy.url, noProxy: [] }, {})
  const at = 'http://issuer.test/jwks'
  expect(await fetchKeys({ kind: 'url', at }, outgoing, signal)).toEqual({ keys: [key.jwk] })
  expect(proxy.asked).toEqual([at])
})

describe('a key server that', () => {
  it.each<[what: string, misbehave: RequestListener, reason: RegExp]>([
    ['hangs', () => {}, /aborted/],
    [
      'sends a byte now and then',
      (_, res) => {
        const drip = setInterval(() => res.write(' '), 100)
        res.on('close', () => clearInterval(drip))
      },
      /aborted/,
    ],
    ['sends a page', (_, res) => void res.end('<html>login</html>'), /not JSON/],
    ['fails', (_, res) => void res.writeHead(500).end(), /returned 500/],
    ['says that nothing is new', (_, res) => void res.writeHead(304).end(), /returned 304/],
    ['has no content', (_, res) => void res.writeHead(204).end(), /returned 204/],
    ['redirects', (_, res) => void res.writeHead(302, { Location: '/elsewhere' }).end(), /returned 302/],
    ['sends 10 MB', (_, res) => void res.end(`{"keys":[],"x":"${'x'.repeat(10_000_000)}"}`), /not JSON/],
    ['closes the connection', (_, res) => void res.destroy(), /closed the connection/],
  ])('%s', async (_, misbehave, reason) => {
    const server = await startKeyServer([key])
    server.misbehave = misbehave
    // Only those that are to be late have little time, so that a busy machine doesn't decide.
    const limit = AbortSignal.timeout(reason.source === 'aborted' ? 500 : 30_000)
    await expect(fetchKeys({ kind: 'url', at: server.url }, DIRECT, limit)).rejects.toThrow(reason)
    expect(server.asked).toHaveLength(1)
  })
})

describe('attack: a discovery document that', () => {
  it.each([
    ['is of another issuer', (url: string) => ({ issuer: 'https://evil.example', jwks_uri: `${url}/jwks` })],
    ['has no URL of keys', (url: string) => ({ issuer: url })],
    ['names a plain http URL', (url: string) => ({ issuer: url, jwks_uri: 'http://192.0.2.1/jwks' })],
    ['names a file', (url: string) => ({ issuer: url, jwks_uri: 'file:///etc/passwd' })],
  ])('%s', async (_, document) => {
    const server = await startKeyServer([key])
    server.misbehave = (_, res) => void res.end(JSON.stringify(document(server.url)))
    const fetching = fetchKeys(ofIssuer(server.url), DIRECT, signal)
    await expect(fetching).rejects.toThrow(/of another issuer|has no jwks_uri/)
    expect(server.asked).toHaveLength(1)
  })
})

it.each([
  ['https://issuer.example/x', true],
  ['http://127.0.0.1:8080', true],
  ['http://[::1]:8080', true],
  ['http://localhost:8080', true],
  ['http://issuer.example', false],
  ['http://127.0.0.1.evil.example', false],
  ['https://user:password@issuer.example', false],
  ['file:///etc/keys', false],
  ['issuer.example', false],
])('%s as an issuer: %s', (url, isSafe) => {
  expect(isSafeUrl(url)).toBe(isSafe)
})
