import { randomUUID } from 'node:crypto'
import { createServer, type RequestListener } from 'node:http'
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose'
import { onTestFinished } from 'vitest'
import { listen } from '../helpers/listen.ts'

export interface SigningKey {
  readonly kid: string
  readonly alg: string
  readonly privateKey: CryptoKey
  readonly jwk: JWK
}

export async function makeKey(alg = 'RS256', kid: string = randomUUID()): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } }
}

/** Signs a token that lives for five minutes from now on, as CI providers do. Claims that are undefined are left out. */
export function sign(
  key: SigningKey,
  claims: JWTPayload,
  header: Record<string, unknown> = {},
): Promise<string> {
  const now = Math.floor(Date.now() / 1000)
  const payload = { iat: now, nbf: now, exp: now + 300, ...claims }
  const given = Object.fromEntries(Object.entries(payload).filter(([, value]) => value !== undefined))
  return new SignJWT(given)
    .setProtectedHeader({ alg: key.alg, kid: key.kid, typ: 'JWT', ...header })
    .sign(key.privateKey)
}

export interface KeyServer {
  /** `http://127.0.0.1:…`, which is the issuer, too. */
  readonly url: string
  /** Paths that were asked for so far. */
  readonly asked: string[]
  /** The keys that it publishes. */
  keys: JWK[]
  /** Answers in place of the keys and of the discovery document. */
  misbehave: RequestListener | undefined
}

/** A server with the signing keys of an issuer at the paths of all presets, and with a discovery document. */
export async function startKeyServer(keys: readonly SigningKey[]): Promise<KeyServer> {
  const server = createServer((req, res) => {
    state.asked.push(req.url ?? '')
    if (state.misbehave) return state.misbehave(req, res)
    const issuer = state.url
    const body =
      req.url === '/.well-known/openid-configuration'
        ? { issuer, jwks_uri: `${issuer}/jwks` }
        : { keys: state.keys }
    res.setHeader('Content-Type', 'application/json').end(JSON.stringify(body))
  })
  const state = {
    url: '',
    asked: [] as string[],
    keys: keys.map(({ jwk }) => jwk),
    misbehave: undefined as RequestListener | undefined,
  }
  const { url, close } = await listen(server)
  state.url = url
  onTestFinished(close)
  return state
}
