import { describe, expect, it } from 'vitest'
import { readDestinations } from '../src/config/providers.ts'
import { makeDirectory } from './helpers/directory.ts'
import { upload } from './helpers/form.ts'
import { startApp, type TestApp } from './helpers/start-app.ts'
import { type StubBucket, startStubBucket } from './helpers/stub-bucket.ts'

const PRIVATE = { urlPrefix: undefined, link: 'redirect' }

async function startWith(bucket: StubBucket, more: object = {}, settings: object = {}) {
  const options = { ...bucket.options, ...PRIVATE, ...more }
  const providers = { s3: { "my b's": options, other: options } }
  return startApp({ config: { ...settings, default: "s3/my b's", providers } })
}

const KEYS = { accessKeyId: 'id', secretAccessKey: 'a secret of them' }

const look = (url: string, init: RequestInit = {}) => fetch(url, { redirect: 'manual', ...init })

describe('a link that is redirected', () => {
  it('never changes, leads to a signed address that lasts longer, and is kept by no shared cache', async () => {
    const bucket = await startStubBucket()
    const app = await startWith(bucket, { presignedFor: '30s' })
    const { result } = await upload(`${app.url}/upload`, { "ü it's.txt": 'hello' })
    const [link = ''] = result
    expect(link.startsWith(`${app.url}/links/s3/my%20b%27s/20`)).toBe(true)
    const { status, headers } = await look(link)
    expect(status).toBe(302)
    expect(headers.get('cache-control')).toBe('private, max-age=15')
    expect(headers.get('location')).toContain('X-Amz-Expires=30')
    expect(await (await fetch(link)).text()).toBe('hello')
    const again = await upload(`${app.url}/upload`, { "ü it's.txt": 'hello' })
    expect(again.result).toEqual([link])
  })

  it('opens nothing of the bucket that was not uploaded here', async () => {
    const bucket = await startStubBucket()
    const app = await startWith(bucket)
    const [link = ''] = (await upload(`${app.url}/upload`, { 'a.txt': 'hello' })).result
    const folder = link.slice(0, link.lastIndexOf('/'))
    const key = decodeURIComponent(link.slice(link.indexOf('/20') + 1))
    const here = ['/b.txt', '', '/%00', `/${'a'.repeat(5000)}`].map(end => folder + end)
    const elsewhere = ['another', 'other', 'my%20b%27s/_'].map(name => `${app.url}/links/s3/${name}/${key}`)
    const odd = [`${app.url}/links/local/my%20b%27s/${key}`, `${app.url}/links/s3/my%20b%27s/%25`]
    for (const name of [...here, ...elsewhere, ...odd, `${link}x`, `${link}/x`]) {
      const response = await look(name)
      expect([name, response.status]).toEqual([name, 404])
      expect(response.headers.get('location')).toBeNull()
    }
    expect((await look(link, { method: 'POST' })).status).toBe(405)
  })

  it('opened an object of a new bucket that was never uploaded, since one of that name had been in the old one', async () => {
    const bucket = await startStubBucket()
    const directory = await makeDirectory()
    const start = (more: object) =>
      startApp({
        directory,
        config: { providers: { s3: { a: { ...bucket.options, ...PRIVATE, ...more } } } },
      })
    const before = await start({})
    const [link = ''] = (await upload(`${before.url}/upload`, { 'a.txt': 'hello' })).result
    await before.server.stop()
    const statusBy = async (app: TestApp) => (await look(app.url + new URL(link).pathname)).status
    const moved = await start({ bucket: 'another' })
    expect(await statusBy(moved)).toBe(404)
    await moved.server.stop()
    expect(await statusBy(await start({}))).toBe(302)
  })

  it('is no way into a destination whose links are direct', async () => {
    const bucket = await startStubBucket()
    const app = await startWith(bucket, { link: 'direct', linkType: 'presigned' })
    const [link = ''] = (await upload(`${app.url}/upload`, { 'a.txt': 'hello' })).result
    const key = new URL(link).pathname.slice('/bucket/'.length)
    expect(link).toContain('X-Amz-Signature=')
    expect((await look(`${app.url}/links/s3/my%20b%27s/${key}`)).status).toBe(404)
  })

  it('asks for a key where it is for callers, and that key must be for the destination', async () => {
    const bucket = await startStubBucket()
    const keys = [
      { name: 'one', key: 'the key of one person' },
      { name: 'two', key: 'the key of another', destinations: ['s3/other'] },
    ]
    const reverseProxy = { from: ['127.0.0.1'], preset: 'authelia' }
    const app = await startWith(
      bucket,
      { linkAccess: 'callers' },
      { auth: { keys, reverseProxy, loopbackExempt: false } },
    )
    const to = `${app.url}/upload?key=${encodeURIComponent(keys[0]?.key ?? '')}`
    const [link = ''] = (await upload(to, { 'a.txt': 'hello' })).result
    const statusWith = async (key: string) =>
      (await look(link, { headers: { Authorization: `Bearer ${key}` } })).status
    expect((await look(link)).status).toBe(401)
    expect(await statusWith('a wrong key')).toBe(401)
    expect(await statusWith(keys[1]?.key ?? '')).toBe(403)
    expect(await statusWith(keys[0]?.key ?? '')).toBe(302)
    expect((await look(link, { headers: { 'Remote-User': 'alice' } })).status).toBe(302)
    const byQuery = await look(`${link}?key=${encodeURIComponent(keys[0]?.key ?? '')}`)
    expect(byQuery.headers.get('location')).not.toContain('one%20person')
    expect((await look(link.replace('.txt', '.png'), {})).status).toBe(401)
    // Attack: which destinations are there?
    const away = link.replace('/s3/', '/webdav/')
    expect((await look(away)).status).toBe(401)
    for (const [index, status] of [404, 403].entries()) {
      const Authorization = `Bearer ${keys[index]?.key}`
      expect((await look(away, { headers: { Authorization } })).status).toBe(status)
    }
  })
})

it.each([
  [
    's3',
    { preset: 'minio', endpoint: 'http://127.0.0.1:9', bucket: 'b', ...KEYS },
    { linkType: 'presigned' },
  ],
  // With an address for visitors nothing has to be changed.
  [
    's3',
    { region: 'r', bucket: 'b', ...KEYS, urlPrefix: 'https://x.example' },
    { urlPrefix: 'https://x.example' },
  ],
  ['azure', { account: 'pictures1', container: 'drafts', accountKey: 'a'.repeat(86) }, { linkType: 'sas' }],
  ['tcyun', { region: 'r', bucket: 'b', ...KEYS }, { linkType: 'presigned' }],
])('"link": "redirect" alone makes a store of %s private: %j', async (type, options, expected) => {
  const report = (path: string, message: string) => expect.fail(`${path} ${message}`)
  const given = { [type]: { a: { ...options, link: 'redirect' } } }
  const [read] = await readDestinations(given, path => path, report)
  expect(read?.options).toMatchObject(expected)
})

it.each([
  [{ local: { a: { directory: 'x', serve: true, link: 'redirect' } } }, /can sign URLs/],
  [
    { azure: { a: { account: 'pictures1', container: 'drafts', sasToken: 'sig=x', link: 'redirect' } } },
    /azure\.a: "linkType": "sas" and "link": "redirect" need the "accountKey" to sign with/,
  ],
  [{ local: { a: { directory: 'x', serve: true, linkAccess: 'callers' } } }, /"linkAccess" needs "link"/],
])('%j is refused', async (providers, reason) => {
  await expect(startApp({ config: { providers } })).rejects.toThrow(reason)
})
