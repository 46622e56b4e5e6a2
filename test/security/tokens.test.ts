import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { JWTPayload } from 'jose'
import { describe, expect, it } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { sendRaw } from '../helpers/raw-request.ts'
import { startApp } from '../helpers/start-app.ts'
import { makeKey, type SigningKey, sign, startKeyServer } from '../servers/key-server.ts'

const [rsa, elliptic, stranger] = await Promise.all([makeKey(), makeKey('ES256'), makeKey()])

const KEY = 'k3y-0f-the-server'
const AUDIENCE = 'https://img.example.com'
const GITHUB = { aud: AUDIENCE, repository: 'acme/site', repository_owner_id: '1234', event_name: 'push' }
const FORM = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhi\r\n--b--\r\n'
const TYPE = 'Content-Type: multipart/form-data; boundary=b'

interface Sent {
  readonly headers?: readonly string[]
  readonly target?: string
}

/** A server with tokens of an issuer on this machine, where no one is exempt. */
async function startWith(entry: object, auth: object = {}, config: object = {}) {
  const issuer = await startKeyServer([rsa, elliptic])
  const keys = 'algorithms' in entry ? { jwksUrl: `${issuer.url}/jwks` } : {}
  const tokens = [{ name: 'ci', audience: AUDIENCE, issuer: issuer.url, ...keys, ...entry }]
  const app = await startApp({
    config: {
      server: { key: KEY },
      auth: { loopbackExempt: false, tokens, ...auth },
      page: { history: true },
      keyTemplate: '{user}/{filename}{extname}',
      ...config,
    },
  })
  return {
    app,
    issuer,
    token: (claims: JWTPayload = {}, key: SigningKey = rsa) =>
      sign(key, { iss: issuer.url, ...GITHUB, ...claims }),
    async upload({ headers = [], target = '/upload' }: Sent) {
      const request = { line: `POST ${target} HTTP/1.1`, headers: [TYPE, ...headers], body: FORM }
      const { status, headers: got, body } = await sendRaw(app.url, request)
      const { code, message } = JSON.parse(body.toString('utf8')) as { code?: string; message: string }
      const line = app.log.findLast(one => (one['req'] as { path?: string } | undefined)?.path === '/upload')
      return { status, retryAfter: Number(got.get('retry-after')), code, message, line }
    },
    async history(token: string) {
      const headers = [`Authorization: Bearer ${token}`]
      const { body } = await sendRaw(app.url, { line: 'GET /history HTTP/1.1', headers })
      return JSON.parse(body.toString()).result as unknown[]
    },
  }
}

const OWNER = { preset: 'github-actions', claims: { repository_owner_id: ['1234'] } }
const bearer = (token: string) => ({ headers: [`Authorization: Bearer ${token}`] })

it('a job uploads with its token, is named in log and history, and sorts its files by {user}', async () => {
  const { app, token, upload, history } = await startWith(OWNER)
  const right = await token()
  for (const header of ['Authorization: Bearer ', 'Authorization: ', 'X-Upload-Key: ', 'X-PicGo-Secret: ']) {
    const { status, line } = await upload({ headers: [header + right] })
    expect(status).toBe(200)
    expect(line).toMatchObject({ admittedBy: 'token', caller: 'token ci: acme/site' })
  }
  expect((await app.files()).join()).toMatch(/\/site-[0-9a-f]{6}\/a/)
  expect(await history(right)).not.toEqual([])
  expect(await history(await token({ repository: 'acme/other' }))).toEqual([])
  expect(app.rawLog()).not.toContain(right.slice(0, 40))
})

it('attack: a foreign repository with our audience gets an answer that names no claim; the log does', async () => {
  const { token, upload } = await startWith(OWNER)
  const evil = await token({ repository: 'evil/site', repository_owner_id: '666' })
  const { status, code, message, line } = await upload(bearer(evil))
  expect([status, code]).toEqual([401, 'unauthorized'])
  expect(message).not.toMatch(/claim|owner|666|1234/)
  expect(JSON.stringify(line)).toMatch(/repository_owner_id.*666/)
  expect(JSON.stringify(line)).not.toContain(evil.split('.')[1])
})

it('a token in the query is not read', async () => {
  const { token, upload, issuer } = await startWith(OWNER)
  const right = await token()
  for (const name of ['key', 'secret'])
    expect(await upload({ target: `/upload?${name}=${right}` })).toMatchObject({ status: 401 })
  expect(issuer.asked).toEqual([])
})

it('an upload key needs no token, and one right one of several is enough', async () => {
  const { token, upload, issuer } = await startWith(OWNER)
  expect(await upload({ headers: [`X-Upload-Key: ${KEY}`] })).toMatchObject({ status: 200 })
  const expired = await token({ exp: 1 })
  const both = { headers: [`X-Upload-Key: ${KEY}`, `Authorization: Bearer ${expired}`] }
  const byKey = await upload(both)
  expect(byKey.status).toBe(200)
  expect(byKey.line).toMatchObject({ caller: 'server', admittedBy: 'key' })
  expect(issuer.asked).toEqual([])
  const wrongBeside = { headers: ['X-Upload-Key: wrong', `Authorization: Bearer ${await token()}`] }
  expect(await upload(wrongBeside)).toMatchObject({ status: 200 })
})

describe('the limit of wrong keys', () => {
  it.each([
    ['a foreign repository', { repository_owner_id: '666' }],
    ['another audience', { aud: 'https://elsewhere.example' }],
    ['another issuer', { iss: 'https://elsewhere.example' }],
    ['a time that has passed', { exp: 1 }],
  ])('tokens of %s do not count, however many come at once', async (_, claims) => {
    const { token, upload } = await startWith(OWNER, { maxFailures: 2 })
    const unfit = bearer(await token(claims))
    const all = await Promise.all(Array.from({ length: 20 }, () => upload(unfit)))
    expect(new Set(all.map(({ status }) => status))).toEqual(new Set([401]))
    expect(await upload(bearer(await token()))).toMatchObject({ status: 200 })
  })

  it('attack: forged tokens count, and then a right one is refused, too', async () => {
    const { token, upload } = await startWith(OWNER, { maxFailures: 3 })
    const forged = await sign({ ...stranger, kid: rsa.kid }, { ...GITHUB, iss: 'x' })
    const [header, , signature] = forged.split('.')
    const [, payload] = (await token()).split('.')
    for (let i = 0; i < 3; i++)
      expect(await upload(bearer(`${header}.${payload}.${signature}`))).toMatchObject({ status: 401 })
    expect(await upload(bearer(await token()))).toMatchObject({ status: 429, code: 'rate_limited' })
  })

  it.each([
    ['attack: keys are guessed beside an expired token that does not count', { exp: 1 }, false],
    ['attack: keys are guessed while the key server is away', {}, true],
  ])('%s', async (_, claims, isAway) => {
    const { issuer, token, upload } = await startWith(OWNER, { maxFailures: 3 })
    if (isAway) issuer.misbehave = (_, res) => void res.destroy()
    const beside = `Authorization: Bearer ${await token(claims)}`
    for (let i = 0; i < 3; i++) await upload({ headers: [`X-Upload-Key: guess-${i}`, beside] })
    expect(await upload({ headers: [`X-Upload-Key: ${KEY}`] })).toMatchObject({ status: 429 })
  })
})

it('while no key of the issuer is known, the answer is 503 and says when to try again', async () => {
  const { app, issuer, token, upload } = await startWith(OWNER)
  issuer.misbehave = (_, res) => void res.writeHead(500).end()
  const right = await token()
  const { status, code, message, retryAfter } = await upload(bearer(right))
  expect([status, code]).toEqual([503, 'identity_unavailable'])
  expect([29, 30]).toContain(retryAfter)
  expect(message).not.toMatch(/127\.0\.0\.1|http/)
  expect(await upload(bearer(right))).toMatchObject({ status: 503 })
  expect(issuer.asked).toHaveLength(1)
  expect(app.rawLog()).toContain('Could not fetch the signing keys of tokens')
  expect(await upload({ headers: [`X-Upload-Key: ${KEY}`] })).toMatchObject({ status: 200 })
})

it('a token may use only the destinations and sources of its entry', async () => {
  const { app, token } = await startWith({ ...OWNER, sources: ['url'] })
  const { status, body } = await sendRaw(app.url, {
    headers: [TYPE, `Authorization: Bearer ${await token()}`],
    body: FORM,
  })
  expect([status, JSON.parse(body.toString()).code]).toEqual([403, 'source_forbidden'])
})

describe('a reverse proxy that signs', () => {
  const EMAIL = { email: 'bob@example.com' }

  it.each<
    [preset: string, header: string, key: SigningKey, entry: (url: string) => object, claims: JWTPayload]
  >([
    [
      'cloudflare-access',
      'Cf-Access-Jwt-Assertion',
      rsa,
      () => ({}),
      { aud: [AUDIENCE], type: 'app', sub: 'u1' },
    ],
    [
      'google-iap',
      'X-Goog-IAP-JWT-Assertion',
      elliptic,
      url => ({ issuer: undefined, jwksUrl: `${url}/iap/verify/public_key-jwk` }),
      { iss: 'https://cloud.google.com/iap', sub: 'accounts.google.com:11', hd: 'example.com' },
    ],
    [
      'pomerium',
      'X-Pomerium-Jwt-Assertion',
      elliptic,
      () => ({}),
      { sub: 'u1', groups: ['dev'], name: 'Bob' },
    ],
  ])('%s names the person, but not to pages of other sites', async (preset, header, key, entry, claims) => {
    const issuer = await startKeyServer([rsa, elliptic])
    const iss = preset === 'pomerium' ? issuer.url.replace('http://', '') : issuer.url
    const tokens = [{ name: 'sso', preset, audience: AUDIENCE, issuer: issuer.url, ...entry(issuer.url) }]
    const app = await startApp({ config: { server: { publicUrl: AUDIENCE }, auth: { tokens } } })
    const token = await sign(key, { iss, aud: AUDIENCE, ...EMAIL, ...claims })
    const send = async (...headers: string[]) => {
      const { status, body } = await sendRaw(app.url, { headers: [TYPE, ...headers], body: FORM })
      return [status, JSON.parse(body.toString()).code]
    }
    const [unauthorized, fine] = [
      [401, 'unauthorized'],
      [200, undefined],
    ]
    expect(await send(`${header}: ${token}`, `Origin: ${AUDIENCE}`)).toEqual(fine)
    expect(await send(`${header}: ${token}`)).toEqual(fine)
    expect(app.log.at(-1)).toMatchObject({ admittedBy: 'token', caller: 'token sso: bob@example.com' })
    const elsewhere = await send(`${header}: ${token}`, 'Origin: https://evil.example')
    expect(elsewhere).toEqual([403, 'origin_forbidden'])
    // What comes through the reverse proxy is never local, even if it connects from this machine.
    expect(await send(`${header}: ${token}x`)).toEqual(unauthorized)
    expect(await send(`${header}: x`)).toEqual(unauthorized)
    expect(await send(`Authorization: Bearer ${token}`, 'X-Forwarded-For: 192.0.2.1')).toEqual(unauthorized)
    expect(await send(`${header}: ${token}`, `${header}: ${token}`)).toEqual(unauthorized)
    const page = await sendRaw(app.url, { line: 'GET /page/me HTTP/1.1', headers: [`${header}: ${token}`] })
    expect(page.body.toString()).toContain('bob@example.com')
  })
})

it('attack: a header of one’s own for tokens of a reverse proxy is open to no other site, and never local', async () => {
  const { app, token, upload } = await startWith(
    { preset: undefined, algorithms: ['RS256'], header: 'X-Id-Token', user: '{repository}' },
    { loopbackExempt: true },
    { metrics: { enabled: true } },
  )
  const header = `X-Id-Token: ${await token()}`
  const metrics = await sendRaw(app.url, { line: 'GET /metrics HTTP/1.1', headers: [header] })
  expect(metrics.status).toBe(401)
  expect(await upload({ headers: [header] })).toMatchObject({ status: 200 })
  expect(await upload({ headers: [header, 'Origin: https://evil.example'] })).toMatchObject({ status: 403 })
  expect(await upload({ headers: ['X-Id-Token: x'] })).toMatchObject({ status: 401 })
})

it('attack: forged tokens in the header of a reverse proxy count, too', async () => {
  const { token, upload } = await startWith(
    { preset: undefined, algorithms: ['RS256'], header: 'X-Id-Token', user: '{repository}' },
    { maxFailures: 3 },
  )
  const right = await token()
  for (let i = 0; i < 3; i++)
    expect(await upload({ headers: [`X-Id-Token: ${right}x`] })).toMatchObject({ status: 401 })
  expect(await upload({ headers: [`X-Id-Token: ${right}`] })).toMatchObject({ status: 429 })
})

const CIRCLE = 'oidc.circleci.com/'
const SERVICE_ACCOUNT = 'system:serviceaccount:ci:builder'

it.each<[preset: string, claims: Record<string, string[]>, sent: JWTPayload, user: string]>([
  [
    'gitlab',
    { project_id: ['22'], ref_protected: ['true'] },
    { project_id: '22', project_path: 'my-group/my-project', ref_protected: 'true' },
    'my-group/my-project',
  ],
  [
    'buildkite',
    { organization_slug: ['acme-inc'] },
    { organization_slug: 'acme-inc', pipeline_slug: 'super-duper-app', build_number: 1 },
    'acme-inc/super-duper-app',
  ],
  [
    'circleci',
    { [`${CIRCLE}vcs-origin`]: ['github.com/acme/*'], [`${CIRCLE}ssh-rerun`]: ['false'] },
    {
      ...{ [`${CIRCLE}project-id`]: 'p1', [`${CIRCLE}vcs-origin`]: 'github.com/acme/site' },
      [`${CIRCLE}ssh-rerun`]: false,
    },
    'p1',
  ],
  [
    'kubernetes',
    { sub: ['system:serviceaccount:ci:*'] },
    { aud: [AUDIENCE], sub: SERVICE_ACCOUNT },
    SERVICE_ACCOUNT,
  ],
])('the documented tokens of %s are accepted', async (preset, claims, sent, user) => {
  const { token, upload } = await startWith({ preset, claims })
  const { status, line } = await upload(bearer(await token(sent)))
  expect({ status, line }).toMatchObject({ status: 200, line: { caller: `token ci: ${user}` } })
})

it('keys from a file need no network, and the file is not uploaded', async () => {
  const directory = await makeDirectory()
  const file = join(directory, 'jwks.json')
  await writeFile(file, JSON.stringify({ keys: [rsa.jwk] }))
  const { issuer, token, upload } = await startWith({
    ...OWNER,
    preset: 'kubernetes',
    jwksFile: file,
    user: '{repository}',
  })
  expect(await upload(bearer(await token()))).toMatchObject({ status: 200 })
  expect(await upload(bearer(await token({}, elliptic)))).toMatchObject({ status: 401 })
  expect(issuer.asked).toEqual([])
})

it('attack: a token that is larger than the server reads', async () => {
  const { token, upload, issuer } = await startWith(OWNER, { maxFailures: 3 })
  const line = `Authorization: Bearer ${await token({ x: 'x'.repeat(17 * 1024) })}`
  expect((await upload({ headers: [line] }).catch(() => ({ status: 431 }))).status).toBe(431)
  expect(issuer.asked).toEqual([])
  expect(await upload(bearer(await token({ x: 'x'.repeat(8 * 1024) })))).toMatchObject({ status: 200 })
})
