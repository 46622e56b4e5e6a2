import { createHmac, createPublicKey } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { CompactSign, type JWTPayload } from 'jose'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { DIRECT } from '../../src/http/proxy/outgoing.ts'
import { openIssuerKeys } from '../../src/tokens/issuer-keys.ts'
import { rulesOf, type TokenSettings } from '../../src/tokens/presets.ts'
import { createTokenVerifier } from '../../src/tokens/verifier.ts'
import { type KeyServer, makeKey, type SigningKey, sign, startKeyServer } from '../servers/key-server.ts'

const [ours, other, elliptic] = await Promise.all([makeKey(), makeKey(), makeKey('ES256')])

const AUDIENCE = 'https://img.example.com'
const CLAIMS = { aud: AUDIENCE, repository: 'acme/site', repository_owner_id: '1234' }

let server: KeyServer
const warnings: string[] = []

beforeEach(async () => {
  server = await startKeyServer([ours])
  warnings.length = 0
  vi.useFakeTimers({ toFake: ['Date'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** Sets the clock of the verifier forward. */
const pass = (ms: number) => vi.setSystemTime(Date.now() + ms)

/** A verifier by these entries, which share their keys. */
function verifierOf(...settings: Partial<TokenSettings>[]) {
  const rules = settings.map((one, i) => {
    const preset = { name: `n${i}`, preset: 'github-actions' as const, issuer: server.url }
    return rulesOf({ ...preset, audience: AUDIENCE, claims: {}, ...one })
  })
  const keys = openIssuerKeys(rules[0]!.keys, DIRECT, reason => warnings.push(reason))
  const { verify, headers } = createTokenVerifier(rules.map(rules => ({ rules, keys })))
  return {
    headers,
    /** The verdict with its reason as one text, or the user. */
    async judge(text: string | Promise<string>, header?: string) {
      const verdict = await verify(await text, header)
      return 'reason' in verdict ? `${verdict.outcome}: ${verdict.reason}` : verdict
    },
  }
}

const OWNER = { claims: { repository_owner_id: ['1234'] } }
const token = (claims: JWTPayload = {}, header = {}, key: SigningKey = ours) =>
  sign(key, { iss: server.url, ...CLAIMS, ...claims }, header)

const judge = (text: string | Promise<string>) => verifierOf(OWNER).judge(text)
const ACCEPTED = { outcome: 'accepted', index: 0, user: 'acme/site' }

const part = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

it('a token of our repository is accepted, with the name of the repository', async () => {
  expect(await judge(token())).toEqual(ACCEPTED)
  expect(await judge(token({ aud: ['https://elsewhere.example', AUDIENCE] }))).toEqual(ACCEPTED)
})

describe('a well-signed token is unfit', () => {
  const now = Math.floor(Date.now() / 1000)
  it.each<[what: string, claims: JWTPayload, reason: RegExp]>([
    ['for another audience', { aud: 'https://elsewhere.example' }, /"aud" is .*elsewhere.*expected.*img/],
    ['without an audience', { aud: undefined }, /"aud" is missing/],
    ['with an audience that only begins like ours', { aud: `${AUDIENCE}.evil.example` }, /"aud"/],
    ['of another issuer', { iss: 'https://evil.example' }, /issuer "https:\/\/evil.example" is not conf/],
    ['without an issuer', { iss: undefined }, /issuer missing is not configured/],
    ['that has expired', { exp: now - 61 }, /"exp" is \d+, expected a time in the future/],
    ['that never expires', { exp: undefined }, /"exp" is missing/],
    ['whose end is a text', { exp: '9999999999' as never }, /"exp"/],
    ['that is not valid yet', { nbf: now + 120 }, /"nbf" is \d+, expected a time in the past/],
    ['that was issued in the future', { iat: now + 120 }, /"iat" is \d+, expected a time in the past/],
    [
      'of a foreign repository with our audience',
      { repository: 'evil/site', repository_owner_id: '666' },
      /"repository_owner_id" is "666", expected \["1234"\]/,
    ],
    [
      'without the claim of the owner',
      { repository_owner_id: undefined },
      /"repository_owner_id" is missing/,
    ],
    ['without the claim of the user name', { repository: undefined }, /no user name/],
  ])('%s', async (_, claims, reason) => {
    const verdict = await judge(token(claims))
    expect(verdict).toMatch(/^unfit: /)
    expect(verdict).toMatch(reason)
  })

  it('when its key ID is unknown, and the keys have just been fetched for it', async () => {
    const { judge } = verifierOf(OWNER, { claims: { ref: ['main'] } })
    expect(await judge(token({}, { kid: 'k' }))).toMatch(/^unfit: .*key ID is unknown/)
    expect(server.asked.filter(path => path === '/jwks')).toHaveLength(1)
  })
})

it.each([
  ['exp', -50, -70],
  ['nbf', 50, 70],
  ['iat', 50, 70],
])('clocks may differ by 60 s: %s', async (claim, near, far) => {
  const at = (seconds: number) => token({ [claim]: Math.floor(Date.now() / 1000) + seconds })
  expect(await judge(at(near))).toEqual(ACCEPTED)
  expect(await judge(at(far))).toMatch(/^unfit: /)
})

describe('attack:', () => {
  const forged = /^forged: /
  const payloadOf = async () => (await token()).split('.')[1]
  /** A token whose signature is made with a shared secret. */
  async function signHmac(secret: string | Buffer, kid: string) {
    const input = `${part({ alg: 'HS256', kid })}.${await payloadOf()}`
    return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
  }
  /** Our token with another part, under its old signature. */
  async function change(index: 0 | 1, value: unknown, claims: JWTPayload = {}) {
    const parts = (await token(claims)).split('.')
    parts[index] = part(value)
    return parts.join('.')
  }
  const publicKey = () => createPublicKey({ key: ours.jwk as never, format: 'jwk' })
  const TWICE = `{"alg":"none","alg":"RS256","kid":"${ours.kid}"}`

  it.each<[what: string, make: () => string | Promise<string>]>([
    ['a signature of another key under our key ID', () => token({}, { kid: ours.kid }, other)],
    ...['none', 'None', 'NONE'].map((alg): [string, () => Promise<string>] => [
      `the algorithm ${alg}`,
      async () => `${part({ alg, kid: ours.kid })}.${await payloadOf()}.`,
    ]),
    [
      'HS256 with our public key (PEM)',
      () => signHmac(publicKey().export({ type: 'spki', format: 'pem' }), ours.kid),
    ],
    [
      'HS256 with our public key (DER)',
      () => signHmac(publicKey().export({ type: 'spki', format: 'der' }), ours.kid),
    ],
    ['HS256 with our public key (JWK)', () => signHmac(JSON.stringify(ours.jwk), ours.kid)],
    [
      'an extension that must be understood',
      () => change(0, { alg: 'RS256', kid: ours.kid, crit: ['exp'], exp: 1 }),
    ],
    [
      'changed claims under an old signature',
      () => change(1, { iss: server.url, ...CLAIMS, exp: 9_999_999_999 }),
    ],
    [
      'members that are there twice: the check and the signature read the same',
      () => change(1, `{"repository_owner_id":"666","iss":"${server.url}","repository_owner_id":"1234"}`),
    ],
    ['members of the header that are there twice', () => change(0, TWICE)],
  ])('%s', async (_, make) => {
    expect(await judge(make())).toMatch(forged)
  })

  it('a shared secret in the key set does not make HS256 right, and nothing is fetched for it', async () => {
    server.keys = [{ kty: 'oct', k: part('secret'), kid: 'shared', alg: 'HS256' }]
    expect(await judge(signHmac('secret', 'shared'))).toMatch(forged)
    expect(server.asked).toEqual([])
  })

  it('an algorithm that is not configured, by a key of the issuer', async () => {
    server.keys = [ours.jwk, elliptic.jwk]
    expect(await judge(token({}, {}, elliptic))).toMatch(/^forged: .*ALG_NOT_ALLOWED/)
  })

  it('a key that the token brings along is ignored', async () => {
    const evil = await startKeyServer([other])
    const header = { jku: `${evil.url}/jwks`, x5u: `${evil.url}/x5u`, jwk: other.jwk }
    expect(await judge(token({}, { ...header, kid: other.kid }, other))).toMatch(/^unfit: .*unknown/)
    expect(await judge(token({}, { ...header, kid: ours.kid }, other))).toMatch(forged)
    expect(await judge(token({}, header))).toEqual(ACCEPTED)
    expect(evil.asked).toEqual([])
  })

  it('members that are there twice in a signed token: the last one counts everywhere', async () => {
    const exp = Math.floor(Date.now() / 1000) + 300
    const signTwice = (owners: readonly string[]) => {
      const rest = JSON.stringify({ iss: server.url, ...CLAIMS, repository_owner_id: undefined, exp })
      const members = owners.map(owner => `"repository_owner_id":"${owner}"`).join()
      return new CompactSign(Buffer.from(rest.replace(/}$/, `,${members}}`)))
        .setProtectedHeader({ alg: ours.alg, kid: ours.kid })
        .sign(ours.privateKey)
    }
    expect(await judge(signTwice(['1234', '666']))).toMatch(/^unfit: .*"666"/)
    expect(await judge(signTwice(['666', '1234']))).toEqual(ACCEPTED)
  })

  it('a token of 17 KB is not read', async () => {
    expect(await judge(token({ x: 'x'.repeat(17 * 1024) }))).toBe('forged: it is not a signed token')
    expect(server.asked).toEqual([])
  })

  it.each([
    ['no dots', 'abc'],
    ['two parts', `${part({ alg: 'RS256' })}.${part({})}`],
    ['five parts', 'a.b.c.d.e'],
    ['a list', `${part([])}.${part([])}.x`],
    ['deep JSON', `${part('['.repeat(9000))}.${part({})}.x`],
    ['a prototype', `${part('{"__proto__":{"alg":"RS256"}}')}.${part({ iss: 'x' })}.x`],
    ['spaces', `${part({ alg: 'RS256' })} .${part({})}.x`],
  ])('%s is not a token', async (_, text) => {
    expect(await judge(text)).not.toEqual(ACCEPTED)
    expect(server.asked).toEqual([])
  })
})

describe('keys', () => {
  const by = (key: SigningKey) => token({ exp: Math.floor(Date.now() / 1000) + 86_400 }, {}, key)
  const fails: RequestListener = (_, res) => void res.writeHead(500).end()

  it('that are new are fetched after 30 s, and until then a token of theirs is not refused', async () => {
    const { judge } = verifierOf(OWNER)
    expect(await judge(by(ours))).toEqual(ACCEPTED)
    server.keys = [other.jwk]
    pass(29_000)
    expect(await judge(by(other))).toMatch(/^unavailable: .*key ID is unknown/)
    pass(1000)
    expect(await judge(by(other))).toEqual(ACCEPTED)
    expect(await judge(by(ours))).toMatch(/^unavailable: /)
  })

  it('attack: tokens with ever new key IDs cause one fetch in 30 s', async () => {
    const { judge } = verifierOf(OWNER)
    const unknown = (i: number) => judge(token({}, { kid: `k${i}` }))
    await Promise.all(Array.from({ length: 30 }, (_, i) => unknown(i)))
    for (let i = 0; i < 29; i++) {
      pass(1000)
      await unknown(i)
    }
    expect(server.asked.filter(path => path === '/jwks')).toHaveLength(1)
  })

  it('that are new while the key server returns 500: a token of theirs is not refused', async () => {
    const { judge } = verifierOf(OWNER)
    await judge(by(ours))
    server.misbehave = fails
    pass(30_000)
    expect(await judge(by(other))).toMatch(/^unavailable: .*can't be fetched: .* returned 500/)
    expect(await judge(by(ours))).toEqual(ACCEPTED)
    const asked = server.asked.length
    pass(29_000)
    expect(await judge(by(other))).toMatch(/^unavailable: /)
    expect([server.asked.length, warnings.length]).toEqual([asked, 1])
    server.misbehave = undefined
    server.keys = [ours.jwk, other.jwk]
    pass(1000)
    expect(await judge(by(other))).toEqual(ACCEPTED)
  })

  it('that were withdrawn are wrong after ten minutes', async () => {
    const { judge } = verifierOf(OWNER)
    const lasting = await by(ours)
    expect(await judge(lasting)).toEqual(ACCEPTED)
    server.keys = []
    pass(9 * 60_000)
    expect(await judge(lasting)).toEqual(ACCEPTED)
    pass(60_000)
    expect(await judge(lasting)).toMatch(/^unfit: /)
  })

  it('hold for ten minutes while the key server is away', async () => {
    const { judge } = verifierOf(OWNER)
    const lasting = await by(ours)
    await judge(lasting)
    server.misbehave = fails
    pass(9 * 60_000)
    expect(await judge(lasting)).toEqual(ACCEPTED)
    pass(60_000)
    expect(await judge(lasting)).toMatch(/^unavailable: /)
  })

  it.each<[string, RequestListener]>([
    ['is away', (_, res) => void res.destroy()],
    ['hangs', () => {}],
    ['sends no key set', (_, res) => void res.end('{"keys":"none"}')],
  ])(
    'cannot be had from a key server that %s: the token may be right',
    async (_, misbehave) => {
      server.misbehave = misbehave
      const { judge } = verifierOf({ ...OWNER, jwksUrl: `${server.url}/jwks` })
      expect(await judge(token())).toMatch(/^unavailable: /)
    },
    30_000,
  )

  it('without an ID are found if there is only one that fits', async () => {
    expect(await judge(token({}, { kid: undefined }))).toEqual(ACCEPTED)
    server.keys = [ours.jwk, other.jwk]
    expect(await judge(token({}, { kid: undefined }))).toMatch(/^unfit: .*several keys/)
  })
})

describe('several entries of one issuer', () => {
  it('are all tried, and the first that fits wins', async () => {
    const [first, second] = [{ claims: { ref: ['main'] } }, { claims: { repository: ['acme/*'] } }]
    const { judge } = verifierOf(first, second, OWNER)
    expect(await judge(token())).toEqual({ ...ACCEPTED, index: 1 })
    expect(await judge(token({ ref: 'main' }))).toEqual(ACCEPTED)
    const foreign = token({ repository: 'x/y', repository_owner_id: '6' })
    expect(await judge(foreign)).toMatch(/^unfit: "n0": .*; "n1": .*; "n2": /)
  })

  it('a token counts only in the header of its entry', async () => {
    const { judge, headers } = verifierOf({ preset: 'cloudflare-access' })
    const bob = token({ email: 'bob@example.com' })
    expect(headers).toEqual(['cf-access-jwt-assertion'])
    expect(await judge(bob)).toMatch(/^unfit: /)
    expect(await judge(bob, 'cf-access-jwt-assertion')).toEqual({ ...ACCEPTED, user: 'bob@example.com' })
  })
})
