import type { RequestListener } from 'node:http'
import { exportJWK, generateKeyPair, type JWK } from 'jose'
import Provider from 'oidc-provider'
import { expect, it } from 'vitest'
import { sendRaw } from '../helpers/raw-request.ts'
import { startApp } from '../helpers/start-app.ts'
import { serve } from '../uploader/sources/servers.ts'

const AUDIENCE = 'https://img.example.com'
const FORM = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhi\r\n--b--\r\n'

async function makeJwk(kid: string): Promise<JWK> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  return { ...(await exportJWK(privateKey)), kid, alg: 'RS256', use: 'sig' }
}

/**
 * A server for jobs of one owner, and a certified OpenID provider, whose client gets JWT access tokens for any audience, as CI
 * jobs do.
 *
 * @param owner whose jobs the provider signs tokens for
 */
async function start(owner: string) {
  let answer: RequestListener = (_, res) => void res.writeHead(500).end()
  const { origin: issuer } = await serve((req, res) => answer(req, res))
  const claims = { repository_owner_id: ['1234'] }
  const entry = { name: 'ci', preset: 'github-actions', issuer, audience: AUDIENCE, claims }
  const app = await startApp({ config: { auth: { loopbackExempt: false, tokens: [entry] } } })
  const client = { client_id: 'job', client_secret: 's3cret-0f-the-job', redirect_uris: [] }
  const resource = { scope: 'upload', accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } } } as const

  return {
    app,
    publish(keys: readonly JWK[]) {
      answer = new Provider(issuer, {
        jwks: { keys },
        clients: [{ ...client, grant_types: ['client_credentials'], response_types: [] }],
        extraTokenClaims: () => ({ repository: 'acme/site', repository_owner_id: owner }),
        features: {
          clientCredentials: { enabled: true },
          devInteractions: { enabled: false },
          resourceIndicators: {
            enabled: true,
            getResourceServerInfo: (_: unknown, audience: string) => ({ ...resource, audience }),
          },
        },
      }).callback()
    },
    async token(audience: string): Promise<string> {
      const response = await fetch(`${issuer}/token`, {
        method: 'POST',
        headers: { Authorization: `Basic ${btoa('job:s3cret-0f-the-job')}` },
        body: new URLSearchParams({
          grant_type: 'client_credentials',
          scope: 'upload',
          resource: audience,
        }),
      })
      const body = (await response.json()) as { access_token: string }
      expect(body).toMatchObject({ access_token: expect.any(String) })
      return body.access_token
    },
    async upload(token: string) {
      const headers = ['Content-Type: multipart/form-data; boundary=b', `Authorization: Bearer ${token}`]
      return (await sendRaw(app.url, { headers, body: FORM })).status
    },
  }
}

it('tokens of a real OpenID provider, found by discovery, until its keys are rotated', async () => {
  const { app, publish, token, upload } = await start('1234')
  const [first, second] = await Promise.all([makeJwk('first'), makeJwk('second')])
  publish([first])
  const right = await token(AUDIENCE)
  expect(await upload(right)).toBe(200)
  expect(app.log.at(-1)).toMatchObject({ caller: 'token ci: acme/site' })
  expect(await upload(await token('https://elsewhere.example'))).toBe(401)

  // A new key, before the pause between two fetches is over: unknown, and not a wrong key.
  publish([second, first])
  expect(await upload(await token(AUDIENCE))).toBe(503)
  expect(JSON.stringify(app.log.at(-1))).toContain('key ID is unknown')
  expect(await upload(right)).toBe(200)
})

it('attack: a job of another owner at the same provider asks for our audience', async () => {
  const { app, publish, token, upload } = await start('666')
  publish([await makeJwk('only')])
  expect(await upload(await token(AUDIENCE))).toBe(401)
  expect(await app.files()).toEqual([])
})
