import { hash } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createConnections } from '../../../src/http/connections.ts'
import { createOutgoing } from '../../../src/http/proxy/outgoing.ts'
import { credentialsOfEnvironment } from '../../../src/providers/s3/credentials.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { type Answer, type Played, type Player, play } from '../../helpers/player.ts'
import { openLoopbackS3 } from '../../helpers/s3-target.ts'
import { put } from '../../helpers/target.ts'

/** For the rest of the test; undefined takes a variable away. */
function setEnvironment(variables: Record<string, string | undefined>): void {
  for (const [name, value] of Object.entries(variables)) {
    const before = process.env[name]
    assign(name, value)
    onTestFinished(() => assign(name, before))
  }
}

function assign(name: string, value: string | undefined): void {
  if (value === undefined) delete process.env[name]
  else process.env[name] = value
}

/** A bucket whose keys a program tells that stands in `~/.aws/config`; it notes each call in `calls`. */
async function openWithProgram(lifeMs: number) {
  const home = await makeDirectory()
  const [program, calls] = [join(home, 'program'), join(home, 'calls')]
  const keys = {
    Version: 1,
    AccessKeyId: 'TEMPORARY',
    SecretAccessKey: 'secret',
    SessionToken: 'the token',
    Expiration: new Date(Date.now() + lifeMs).toISOString(),
  }
  await writeFile(program, `echo call >> '${calls}'\necho '${JSON.stringify(keys)}'\n`)
  await writeFile(join(home, 'config'), `[default]\ncredential_process = sh "${program}"\n`)
  setEnvironment({
    AWS_PROFILE: undefined,
    AWS_ACCESS_KEY_ID: undefined,
    AWS_SECRET_ACCESS_KEY: undefined,
    AWS_CONFIG_FILE: join(home, 'config'),
    AWS_SHARED_CREDENTIALS_FILE: join(home, 'none'),
  })
  const player = await play({ status: 200, headers: { etag: '"x"' } })
  const urlPrefix = 'https://img.example.com'
  const target = openLoopbackS3({ endpoint: player.url, bucket: 'pics', urlPrefix })
  return { target, player, countCalls: async () => (await readFile(calls, 'utf8')).split('\n').length - 1 }
}

const signedBy = ({ requests }: Player) =>
  requests.map(({ headers }) => [
    /Credential=(\w+)/.exec(headers['authorization'] ?? '')?.[1],
    headers['x-amz-security-token'],
  ])

it('keeps temporary credentials as long as they are good', async () => {
  const { target, player, countCalls } = await openWithProgram(3600_000)
  await Promise.all([1, 2, 3].map(i => put(target, `${i}.png`)))
  await put(target, '4.png')
  expect(signedBy(player)).toEqual(Array(4).fill(['TEMPORARY', 'the token']))
  expect(await countCalls()).toBe(1)
})

it('fetches others before temporary credentials end, and uploads meanwhile', async () => {
  const { target, player, countCalls } = await openWithProgram(60_000)
  await put(target, '1.png')
  await put(target, '2.png')
  await expect.poll(countCalls).toBeGreaterThan(1)
  expect(player.requests).toHaveLength(2)
})

const TEMPORARY = `<Credentials><AccessKeyId>LENT</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>
<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials>`
const LENT = { accessKeyId: 'LENT', secretAccessKey: 's', sessionToken: 't', expiration: 4e12 }

/** Amazon as a proxy shows it: everything that is asked for is asked of the proxy. */
function answerForAmazon({ url, text }: Played): Answer {
  const [, action = ''] = /Action=(\w+)/.exec(text) ?? []
  const sts = `<${action}Response><${action}Result>${TEMPORARY}</${action}Result></${action}Response>`
  const token = { accessToken: 'fresh', expiresIn: 3600, refreshToken: 'next' }
  const json = url.endsWith('/token') ? token : { roleCredentials: LENT }
  return action
    ? { status: 200, body: sts, headers: { 'content-type': 'text/xml' } }
    : { status: 200, body: json }
}

/** Where Amazon's library looks, with an empty home, and the proxy that stands before Amazon. */
async function behindProxy(...answers: Parameters<typeof play>) {
  const home = await makeDirectory()
  const proxy = await play(...answers)
  setEnvironment({
    ...{ HOME: home, AWS_EC2_METADATA_DISABLED: 'true', AWS_PROFILE: undefined },
    ...{ AWS_ACCESS_KEY_ID: undefined, AWS_CONFIG_FILE: join(home, 'config') },
    ...{ AWS_SHARED_CREDENTIALS_FILE: join(home, 'none'), AWS_ENDPOINT_URL_STS: 'http://sts.example' },
    ...{ AWS_ENDPOINT_URL_SSO: 'http://sso.example', AWS_ENDPOINT_URL_SSO_OIDC: 'http://oidc.example' },
  })
  const outgoing = createOutgoing({ proxy: proxy.url, noProxy: [] }, {})
  const { http, close } = createConnections({ outgoing })
  onTestFinished(close)
  return { home, proxy, get: credentialsOfEnvironment('eu-west-1', { http, learn() {} }) }
}

const ROLE = 'arn:aws:iam::123456789012:role/uploads'
const SESSION = {
  accessToken: 'old',
  refreshToken: 'r',
  clientId: 'c',
  clientSecret: 's',
  region: 'eu-west-1',
}
const PROFILE = `[profile sso]\nsso_session = mine\nsso_account_id = 123456789012\nsso_role_name = up+load
[sso-session mine]\nsso_region = eu-west-1\nsso_start_url = https://mine.example/start\n`

it.each([
  {
    what: 'a token of the cluster',
    config: 'the token',
    env: (home: string) => ({ AWS_ROLE_ARN: ROLE, AWS_WEB_IDENTITY_TOKEN_FILE: join(home, 'config') }),
    asked: ['POST http://sts.example/'],
  },
  {
    what: 'a role of a profile',
    config: `[profile role]\nrole_arn = ${ROLE}\nsource_profile = own\n[profile own]\naws_access_key_id = a\naws_secret_access_key = s\n`,
    env: () => ({ AWS_PROFILE: 'role' }),
    asked: ['POST http://sts.example/'],
  },
  {
    what: 'single sign-on, whose token ends',
    config: PROFILE,
    env: () => ({ AWS_PROFILE: 'sso' }),
    asked: [
      'POST http://oidc.example/token',
      'GET http://sso.example/federation/credentials?account_id=123456789012&role_name=up%2Bload',
    ],
  },
])('asks Amazon for keys through the proxy, by $what', async ({ config, env, asked }) => {
  const { home, proxy, get } = await behindProxy(answerForAmazon)
  await writeFile(join(home, 'config'), config)
  setEnvironment(env(home))
  const cache = join(home, '.aws', 'sso', 'cache')
  await mkdir(cache, { recursive: true })
  const [expiresAt, registrationExpiresAt] = [60_000, 3600_000].map(ms => new Date(Date.now() + ms))
  const session = JSON.stringify({ ...SESSION, expiresAt, registrationExpiresAt })
  await writeFile(join(cache, `${hash('sha1', 'mine')}.json`), session)
  expect(await get()).toMatchObject({ accessKeyId: 'LENT', sessionToken: 't' })
  expect(proxy.lines()).toEqual(asked)
})

it('asks what runs on this machine past the proxy', async () => {
  const { proxy, get } = await behindProxy({ status: 403 })
  const { accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey, sessionToken: Token } = LENT
  const body = { AccessKeyId, SecretAccessKey, Token, Expiration: '2099-01-01T00:00:00Z' }
  const agent = await play({ status: 200, body })
  setEnvironment({ AWS_CONTAINER_CREDENTIALS_FULL_URI: `${agent.url}/keys` })
  expect(await get()).toMatchObject({ accessKeyId: 'LENT' })
  expect(proxy.requests).toEqual([])
})

it('names a proxy that keeps Amazon away, and says of single sign-on that it has ended', async () => {
  const { home, proxy, get } = await behindProxy({ status: 407 })
  await writeFile(join(home, 'config'), PROFILE)
  setEnvironment({ AWS_PROFILE: 'sso' })
  await expect(get()).rejects.toThrow('To refresh this SSO session run')
  setEnvironment({ AWS_PROFILE: undefined, AWS_ROLE_ARN: ROLE })
  setEnvironment({ AWS_WEB_IDENTITY_TOKEN_FILE: join(home, 'config') })
  await expect(get()).rejects.toThrow(
    `the proxy "127.0.0.1:${proxy.port}" requires a user name and a password`,
  )
})
