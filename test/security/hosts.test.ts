import { describe, expect, it } from 'vitest'
import { sendRaw, sendUpload } from '../helpers/raw-request.ts'
import { shareApp, startApp } from '../helpers/start-app.ts'

const KEY = 'k3y-0f-the-server'
const WITH_KEY = { server: { key: KEY } }
const body = '{"list":["data:,hello"]}'

const NO_HOSTS = [
  ...['a:99999', 'a:65536', 'a:', 'a:b', 'a:1:2', ':80', '', ' '],
  ...['1.2.3.999', '1.2.3.4.5', '256.1.1.1', '0x100000000', '4294967296', '1.2.3.09'],
  ...['[:::]', '[]', '[::1', '::1', '[::1]x', '[::1%25lo]', '[::1%lo]', '[127.0.0.1]', '[1::2::3]'],
  ...['.', '..', '.a', 'a..b', 'a.example..', 'a/b', 'a?b', 'a#b', 'a@b', 'user:pass@a', 'a\\b', 'a,b'],
  ...['a%2fb', 'a b', '"><script>', "a'b", 'é', 'a'.repeat(300), `${'a.'.repeat(3000)}example`],
]
/** With the beginning of each, for the name of its test. */
const rowsOf = (hosts: readonly string[]) => hosts.map((host): [string, string] => [host.slice(0, 30), host])
const PAGES = ['/', '/upload', '/upload-server.sxcu', '/openapi.json', '/heartbeat', '/files/Default/a', '/x']

describe('attack: a Host that is no address', () => {
  const keyed = shareApp({ config: WITH_KEY })
  const proxied = shareApp({ config: { server: { key: KEY, trustProxy: ['loopback'] } } })

  it.each(rowsOf(NO_HOSTS))('is refused before anything is stored or shown: %j', async (_, host) => {
    const app = keyed()
    for (const path of PAGES) {
      const answer = await sendRaw(app.url, { line: `GET ${path} HTTP/1.1`, headers: [`Host: ${host}`] })
      expect(answer.status, path).toBe(400)
      if (host.length > 5) expect(answer.body.toString()).not.toContain(host)
    }
    const headers = [`Host: ${host}`, `X-Upload-Key: ${KEY}`]
    expect(await sendUpload(app.url, { headers, body })).toMatchObject({
      status: 400,
      code: 'invalid_request',
    })
    expect(await app.files()).toEqual([])
  })

  it.each(rowsOf(NO_HOSTS.filter(host => !/[ /?#\\é]|^$/.test(host))))(
    'stands in the target: %j',
    async (_, host) => {
      const app = keyed()
      for (const path of PAGES) {
        const { status } = await sendRaw(app.url, { line: `GET http://${host}${path} HTTP/1.1` })
        expect(status, path).toBe(400)
      }
      const line = `POST http://${host}/upload HTTP/1.1`
      const answer = await sendUpload(app.url, { line, headers: [`X-Upload-Key: ${KEY}`], body })
      expect(answer).toMatchObject({ status: 400, code: 'invalid_request' })
      expect(await app.files()).toEqual([])
    },
  )

  it('is missing from a target that is a whole address', async () => {
    const app = await startApp()
    for (const target of ['http:///upload', 'http://?/upload', 'http://#/upload'])
      expect(await sendUpload(app.url, { line: `POST ${target} HTTP/1.1`, body })).toMatchObject({
        status: 400,
      })
    expect(await app.files()).toEqual([])
  })

  it.each(rowsOf(NO_HOSTS.filter(host => host.trim() !== '' && !host.includes(','))))(
    'comes from a trusted proxy as X-Forwarded-Host: %j',
    async (_, host) => {
      const app = proxied()
      const forwarded = `X-Forwarded-Host: ${host}`
      for (const path of ['/', '/upload-server.sxcu']) {
        const { status } = await sendRaw(app.url, { line: `GET ${path} HTTP/1.1`, headers: [forwarded] })
        expect(status, path).toBe(400)
      }
      const headers = [forwarded, `X-Upload-Key: ${KEY}`]
      const answer = await sendUpload(app.url, { headers, body })
      expect(answer).toMatchObject({ status: 400, code: 'invalid_request' })
      expect(answer.message).toContain('X-Forwarded-Host')
      expect(await app.files()).toEqual([])
    },
  )

  it('comes as X-Forwarded-Host from whom nobody trusts, or where server.publicUrl says the address', async () => {
    const publicUrl = 'https://img.example.com/x'
    const forwarded = ['X-Forwarded-Host: a:99999', 'X-Forwarded-Proto: javascript', `X-Upload-Key: ${KEY}`]
    const stranger = await startApp({ config: WITH_KEY })
    const [link] = (await sendUpload(stranger.url, { headers: forwarded, body })).result
    expect(link).toContain(`${stranger.url}/files/`)
    const known = await startApp({ config: { server: { key: KEY, publicUrl, trustProxy: ['loopback'] } } })
    const [other] = (await sendUpload(known.url, { headers: forwarded, body })).result
    expect(other).toContain(`${publicUrl}/files/`)
  })
})

const linking = shareApp({ config: WITH_KEY })

it.each([
  ...['a', 'a:1', 'a:65535', 'A.Example', 'a.example.', 'up_load-server:36677', '_x.example', '1.2.3.4'],
  ...['127.0.0.1:80', '[::1]', '[2001:DB8::5]:36677', '[::ffff:1.2.3.4]', 'xn--nxasmq6b.example'],
])('links begin with the host that was asked for: %s', async host => {
  const answer = await sendUpload(linking().url, { headers: [`Host: ${host}`, `X-Upload-Key: ${KEY}`], body })
  const expected = `${new URL(`http://${host}`).href}files/Default/`
  expect(answer).toMatchObject({ status: 200, result: [expect.stringContaining(expected)] })
})

it.each(['/upload-server.sxcu', '/'])(
  'attack: a cache hands on %s with the Host of an attacker in it',
  async path => {
    const app = await startApp()
    const headers = ['Host: evil.example']
    const answer = await sendRaw(app.url, { line: `GET ${path} HTTP/1.1`, headers })
    expect(answer.body.toString()).toContain('evil.example')
    expect(answer.headers.get('cache-control')).toBe('no-store')
  },
)
