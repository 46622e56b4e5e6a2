import { createHash } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ask } from './helpers/ask.ts'
import { upload } from './helpers/form.ts'
import { shareApp, startApp, type TestApp } from './helpers/start-app.ts'

const KEYS = [
  { name: 'ci', key: 'k3y-of-the-ci-job' },
  { name: 'other', key: 'k3y-of-somebody-else' },
]
const place = (directory: string, more = {}) => ({ directory, serve: true, ...more })
const CONFIG = {
  auth: { loopbackExempt: false, keys: KEYS },
  default: 'local/ci',
  providers: { local: { ci: place('a'), else: place('b') } },
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const fileOf = (name: string, text: string) => ({ name, sha256: sha256(text), size: text.length })

async function known(app: TestApp, files: unknown, key = KEYS[0]?.key, query = '') {
  const headers = { 'X-Upload-Key': key ?? '', 'Content-Type': 'application/json' }
  const body = JSON.stringify(Array.isArray(files) ? { files } : files)
  const { status, body: text } = await ask(app.url, 'POST', `/upload/known${query}`, { headers, body })
  return { status, ...JSON.parse(text) }
}

const store = async (app: TestApp, files: Record<string, string>, query = '') =>
  (await upload(`${app.url}/upload?key=${KEYS[0]?.key}${query}`, files)).result as string[]

const SEND = { send: true }

describe('POST /upload/known', () => {
  it('answers the link of what the same client has stored there, and "send" for everything else, in order', async () => {
    const app = await startApp({ config: CONFIG })
    const [a, b] = await store(app, { 'a.txt': 'the first', 'b.txt': 'the second' })
    const asked = [
      fileOf('b.txt', 'the second'),
      fileOf('c.txt', 'never stored'),
      fileOf('elsewhere/a.txt', 'the first'),
      { ...fileOf('a.txt', 'the first'), size: 1 },
    ]
    expect(await known(app, asked)).toEqual({
      ...{ status: 200, success: true },
      files: [{ url: b }, SEND, { url: a }, SEND],
    })
    const line = app.log.findLast(one => 'known' in one)
    expect(line).toMatchObject({ inputs: 4, known: 2, destination: 'local/ci' })
  })

  it('attack: a hash tells what another client, or another destination, has', async () => {
    const app = await startApp({ config: CONFIG })
    await store(app, { 'a.txt': 'a secret text' })
    const asked = [fileOf('a.txt', 'a secret text')]
    expect((await known(app, asked, KEYS[1]?.key)).files).toEqual([SEND])
    expect((await known(app, asked, KEYS[0]?.key, '?destination=local/else')).files).toEqual([SEND])
    expect(await known(app, asked, 'a-guess')).toMatchObject({ status: 401, code: 'unauthorized' })
  })

  it('looks at the object: what has vanished is sent again', async () => {
    const app = await startApp({ config: CONFIG })
    const [a] = await store(app, { 'a.txt': 'text', 'b.txt': 'more text' })
    await rm(join(app.directory, 'a', decodeURIComponent(new URL(String(a)).pathname).split('/ci/')[1] ?? ''))
    const { files } = await known(app, [fileOf('a.txt', 'text'), fileOf('b.txt', 'more text')])
    expect(files).toEqual([SEND, { url: expect.stringContaining('/b-') }])
  })

  it('renews the expiry, counts for the quota, and stands in the history like an upload', async () => {
    const config = {
      ...CONFIG,
      page: { history: true },
      auth: {
        ...CONFIG.auth,
        keys: [{ ...KEYS[0], quota: { files: 3, per: '1d' } }],
      },
      providers: { local: { ci: place('a', { expiry: { default: '1d', max: '90d' } }) } },
    }
    const app = await startApp({ config })
    const [a] = await store(app, { 'a.txt': 'text' })
    expect((await known(app, [fileOf('a.txt', 'text')], undefined, '?expires=60d')).files).toEqual([
      { url: a },
    ])
    const headers = { 'X-Upload-Key': KEYS[0]?.key ?? '' }
    const { body } = await ask(app.url, 'GET', '/history', { headers })
    const entries = JSON.parse(body).result as { url: string; expiresAt: string }[]
    expect(new Set(entries.map(({ url }) => url))).toEqual(new Set([a]))
    const days = entries.map(({ expiresAt }) => Math.round((Date.parse(expiresAt) - Date.now()) / 86_400_000))
    expect(days).toContain(60)
    // Two of three files are used. The fourth is left to the upload, which names the quota.
    const asked = ['b', 'c'].map(name => fileOf(`${name}.txt`, 'text'))
    expect((await known(app, asked)).files).toEqual([{ url: a }, SEND])
  })

  it('answers "send" where the destination changes images, since the hash of the input is not that of the object', async () => {
    const providers = { local: { ci: place('a', { images: { resize: { width: 10 } } }) } }
    const app = await startApp({ config: { ...CONFIG, providers } })
    await store(app, { 'a.txt': 'text' })
    expect((await known(app, [fileOf('a.txt', 'text')])).files).toEqual([SEND])
  })

  it('finds the latest list of images by its name, and no other file', async () => {
    const app = await startApp({ config: CONFIG })
    await store(app, { 'visual.review.json': '{"rows":[]}', 'a.txt': 'text' })
    const [latest] = await store(app, { 'visual.review.json': '{"rows":[{}]}' })
    const asked = [{ name: 'visual.review.json' }, { name: 'other.review.json' }]
    expect((await known(app, asked)).files).toEqual([{ url: latest }, SEND])
    expect((await known(app, asked, KEYS[1]?.key)).files).toEqual([SEND, SEND])
    expect((await known(app, asked, KEYS[0]?.key, '?destination=local/else')).files).toEqual([SEND, SEND])
  })

  it('attack: a list of somebody without a key stands for that of somebody else without one', async () => {
    const app = await startApp({
      config: { ...CONFIG, auth: { loopbackExempt: false, anonymous: true } },
    })
    const query = `${app.url}/upload?a`
    await upload(query, { 'visual.review.json': '{"rows":[]}' })
    expect(await known(app, [{ name: 'visual.review.json' }], '')).toMatchObject({
      status: 200,
      files: [SEND],
    })
  })

  const shared = shareApp({ config: CONFIG })

  it.for<[what: string, body: unknown, says: RegExp]>([
    ['no list', {}, /"files"/],
    ['a name that is none', { files: [fileOf('', '')] }, /files\[0\]\.name/],
    ['another hash', { files: [{ ...fileOf('a', ''), sha256: 'ABC' }] }, /files\[0\]\.sha256/],
    ['a negative size', { files: [{ ...fileOf('a', ''), size: -1 }] }, /files\[0\]\.size/],
    ['a hash alone of another file than a list of images', { files: [{ name: 'a.txt' }] }, /./],
  ])('refuses %s', async ([, body, says]) => {
    const { status, code, message } = await known(shared(), body)
    expect({ status, code }).toEqual({ status: 400, code: 'invalid_request' })
    expect(message).toMatch(says)
  })

  it('attack: a list of any length', async () => {
    const many = Array.from({ length: 1001 }, (_, n) => fileOf(`${n}`, `${n}`))
    const nested = JSON.parse(`[${'[],'.repeat(300_000)}[]]`)
    for (const files of [many, nested, [{ ...fileOf('a', ''), name: 'x'.repeat(2_000_000) }]])
      expect(await known(shared(), files)).toMatchObject({ status: 413, code: 'too_large' })
  })
})
