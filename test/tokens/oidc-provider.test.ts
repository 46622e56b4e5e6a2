import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, type JWK } from 'jose'
import Provider from 'oidc-provider'
import { expect, it, onTestFinished } from 'vitest'
import { sendRaw } from '../helpers/raw-request.ts'
import { startApp } from '../helpers/start-app.ts'

const AUDIENCE = 'https://img.example.com'
const FORM = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhi\r\n--b--\r\n'

async function makeJwk(kid: string): Promise<JWK> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  return { ...(await exportJWK(privateKey)), kid, alg: 'RS256', use: 'sig' }
}

/** A certified OpenID provider, whose client gets JWT access tokens for any audience, as CI jobs do. */
async function startProvider(owner: string) {
  let answer: RequestListener = (_, res) => void res.writeHead(500).end()
  const server = createServer((req, res) => answer(req, res))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const publish = (keys: readonly JWK[]) => {
    const provider = new Provider(issuer, {
      jwks: { keys },
      clients: [
        {
          client_id: 'job',
          client_secret: 's3cret-0f-the-job',
          grant_types: ['client_credentials'],
          redirect_uris: [],
          response_types: [],
        },
      ],
      extraTokenClaims: () => ({ repository: 'acme/site', repository_owner_id: owner }),
      features: {
        clientCredentials: { enabled: true },
        devInteractions: { enabled: false },
        resourceIndicators: {
          enabled: true,
          getResourceServerInfo: (_: unknown, audience: string) => ({
            scope: 'upload',
            audience,
            accessTokenFormat: 'jwt',
            jwt: { sign: { alg: 'RS256' } },
          }),
        },
      },
    })
    answer = provider.callback()
  }

  return {
    issuer,
    publish,
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
  }
}

it('tokens of a real OpenID provider, found by discovery, until its keys are rotated', async () => {
  const provider = await startProvider('1234')
  const [first, second] = await Promise.all([makeJwk('first'), makeJwk('second')])
  provider.publish([first])
  const tokens = [
    {
      name: 'ci',
      preset: 'github-actions',
      issuer: provider.issuer,
      audience: AUDIENCE,
      claims: { repository_owner_id: ['1234'] },
    },
  ]
  const app = await startApp({ config: { auth: { loopbackExempt: false, tokens } } })
  const upload = async (token: string) => {
    const headers = ['Content-Type: multipart/form-data; boundary=b', `Authorization: Bearer ${token}`]
    return (await sendRaw(app.url, { headers, body: FORM })).status
  }

  const right = await provider.token(AUDIENCE)
  expect(await upload(right)).toBe(200)
  expect(app.log.at(-1)).toMatchObject({ caller: 'token ci: acme/site' })
  expect(await upload(await provider.token('https://elsewhere.example'))).toBe(401)

  // A new key, before the pause between two fetches is over: unknown, and not a wrong key.
  provider.publish([second, first])
  expect(await upload(await provider.token(AUDIENCE))).toBe(503)
  expect(JSON.stringify(app.log.at(-1))).toContain('key ID is unknown')
  expect(await upload(right)).toBe(200)
})

it('attack: a job of another owner at the same provider asks for our audience', async () => {
  const provider = await startProvider('666')
  provider.publish([await makeJwk('only')])
  const claims = { repository_owner_id: ['1234'] }
  const entry = { name: 'ci', preset: 'github-actions', issuer: provider.issuer, audience: AUDIENCE, claims }
  const app = await startApp({ config: { auth: { loopbackExempt: false, tokens: [entry] } } })
  const headers = [`Authorization: Bearer ${await provider.token(AUDIENCE)}`]
  expect((await sendRaw(app.url, { headers, body: FORM })).status).toBe(401)
  expect(await app.files()).toEqual([])
})
