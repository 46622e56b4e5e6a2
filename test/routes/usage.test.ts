import { describe, expect, it } from 'vitest'
import { en } from '../../src/page/words-en.ts'
import { zh } from '../../src/page/words-zh.ts'
import { ERROR_CODES } from '../../src/routes/status.ts'
import { ask, expectEnvelope } from '../helpers/ask.ts'
import { askMe } from '../helpers/page-me.ts'
import { shareApp, startApp, type TestApp } from '../helpers/start-app.ts'

const KEY = 'k3y-of-the-server'
const providers = {
  local: { secretblog: { directory: 'a', serve: true }, otherblog: { directory: 'b', serve: true } },
}
const PRIVATE = {
  server: { key: KEY },
  auth: {
    loopbackExempt: false,
    maxFailures: 2,
    keys: [{ name: 'ci', key: 'k3y-of-ci', destinations: ['local/otherblog'] }],
  },
  providers,
  default: 'local/secretblog',
}

const plain = shareApp()
const told = shareApp({ config: { providers, default: 'local/otherblog' } })

const get = (app: TestApp, headers = {}, target = '/') => ask(app.url, 'GET', target, { headers })

describe('the usage page', () => {
  it.for(['/', '/upload'])('at %s shows the address of this very server, and no secret', async target => {
    const app = await startApp({ config: { server: { key: KEY } } })
    const { headers, body } = await get(app, {}, target)
    expect(body).toContain(`curl -F file=@picture.png ${app.url}/upload`)
    expect(body).not.toContain(KEY)
    expect(body).not.toMatch(/<script(?! type="module" src=)|<style|\s(?:on\w+|style)=|javascript:/i)
    expect(headers['x-content-type-options']).toBe('nosniff')
    expect(headers['referrer-policy']).toBe('no-referrer')
    expect(headers['content-security-policy']).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob: https: http:; " +
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    )
  })

  it('shows server.publicUrl when there is one, where callers need a key', async () => {
    const app = await startApp({ config: { server: { publicUrl: 'https://img.example.com/up' } } })
    const { body } = await get(app)
    expect(body).toContain('Bearer $UPLOAD_KEY&quot; -F file=@picture.png https://img.example.com/up/upload')
  })

  it('escapes what it shows', async () => {
    const name = '<img src=x onerror=alert(1)>'
    const app = await startApp({
      config: { providers: { local: { [name]: { directory: 'a', serve: true } } } },
    })
    const { guide } = await askMe(app.url)
    expect(guide).toContain('&lt;img src=x onerror=alert(1)&gt;')
    expect(guide).not.toContain('<img')
  })

  it('is the same document for everyone, without a name of a destination', async () => {
    const app = told()
    const bodies = await Promise.all(
      [{}, { 'X-Upload-Key': KEY }, { Origin: 'https://evil.example' }].map(async headers => {
        const { status, headers: sent, body } = await get(app, headers)
        expect([status, sent['cache-control']]).toEqual([200, 'no-store'])
        return body
      }),
    )
    expect(new Set(bodies).size).toBe(1)
    expect(bodies[0]).not.toMatch(/secretblog|otherblog/)
  })

  it('has titles of error codes alone', () => {
    expect(ERROR_CODES).toEqual(expect.arrayContaining(Object.keys(en.failures)))
  })

  it.for<[accept: string | undefined, target: string, lang: string]>([
    [undefined, '/', 'en'],
    ['*', '/', 'en'],
    ['fr', '/', 'en'],
    ['en-GB,en;q=0.9,zh;q=0.1', '/', 'en'],
    ['zh', '/', 'zh-Hans'],
    ['zh-CN,zh;q=0.9,en;q=0.8', '/', 'zh-Hans'],
    ['fr, zh-TW;q=0.5', '/', 'zh-Hans'],
    ['en', '/?lang=zh', 'zh-Hans'],
    ['zh', '/upload?lang=en', 'en'],
    ['zh', '/?lang=%3Cb%3E', 'en'],
  ])('for Accept-Language %s at %s speaks %s', async ([accept, target, lang]) => {
    const { headers, body } = await get(plain(), accept ? { 'Accept-Language': accept } : {}, target)
    expect(body).toContain(`<html lang="${lang}">`)
    expect(headers['content-language']).toBe(lang)
    expect(headers['vary']).toContain('Accept-Language')
  })

  it('says in Chinese all that it says in English, with the same gaps to fill', () => {
    const gaps = (words: unknown): unknown =>
      typeof words === 'string'
        ? [/\S/.test(words), ...(words.match(/\{\w+\}|`[^`]+`/g) ?? []).sort()]
        : Object.fromEntries(Object.entries(words as object).map(([name, text]) => [name, gaps(text)]))
    expect(gaps(zh)).toEqual(gaps(en))
  })
})

describe('the names of the destinations are shown', () => {
  it.for<[who: string, headers: Record<string, string>, query: string, seen: string[]]>([
    ['a key', { 'X-Upload-Key': KEY }, '', ['secretblog', 'otherblog']],
    ['a key for one of them', { 'X-Upload-Key': 'k3y-of-ci' }, '', ['otherblog']],
    ['nothing', {}, '', []],
    ['a wrong key', { 'X-Upload-Key': 'guess' }, '', []],
    ['a key in the address, where it is never looked for', {}, `?key=${KEY}`, []],
  ])('to a caller with %s', async ([, headers, query, seen]) => {
    const { reply, guide } = await askMe((await startApp({ config: PRIVATE })).url, headers, query)
    const names = (text: string) => ['secretblog', 'otherblog'].filter(name => text.includes(name))
    expect(names(reply.body)).toEqual(seen)
    expect(names(guide)).toEqual(seen)
  })

  it('attack: keys can’t be guessed here without being counted', async () => {
    const app = await startApp({ config: PRIVATE })
    for (const guess of ['a', 'b']) await askMe(app.url, { 'X-Upload-Key': guess })
    const { me, reply } = await askMe(app.url, { 'X-Upload-Key': KEY })
    expect(me.visitor).toMatchObject({ code: 'rate_limited' })
    expect(reply.body).not.toContain('secretblog')
    expect(await ask(app.url, 'POST', '/upload', { headers: { 'X-Upload-Key': KEY } })).toMatchObject({
      status: 429,
    })
  })
})

describe('script and style of the page', () => {
  const linked = (body: string) =>
    [...body.matchAll(/(?:src|href)="((?:\.\.\/)*page\/[^"]+)"/g)].map(([, path = '']) => path)

  it('are small, and kept by browsers for good, under an address that changes with them', async () => {
    const app = await startApp()
    const [style = '', script = ''] = linked((await get(app)).body)
    const version = /^page\/([0-9a-f]{12})\/style\.css$/.exec(style)?.[1]
    const names = ['main.js', 'words-zh.js', 'qrcode.js']
    expect(script).toBe(`page/${version}/main.js`)
    let bytes = 0
    for (const name of ['style.css', ...names]) {
      const reply = await get(app, {}, `/page/${version}/${name}`)
      expectEnvelope(reply)
      expect(reply).toMatchObject({
        status: 200,
        headers: {
          'content-type': name === 'style.css' ? 'text/css; charset=utf-8' : 'text/javascript; charset=utf-8',
          'cache-control': 'public, max-age=31536000, immutable',
          'x-content-type-options': 'nosniff',
        },
      })
      for (const [, imported = ''] of reply.body.matchAll(/["'`]\.\/([^"'`]+\.js)["'`]/g))
        expect(names).toContain(imported)
      if (name !== 'qrcode.js') bytes += reply.body.length
    }
    expect(bytes).toBeLessThan(60_000)
  })

  it.for([
    ['/', 'page/'],
    ['//', 'page/'],
    ['/upload', 'page/'],
    ['/upload?x=/', 'page/'],
    ['/upload/', '../page/'],
    ['/upload//?x', '../../page/'],
  ])('are linked from %s by way of %s', async ([target = '', way = '']) => {
    const { body } = await get(plain(), {}, target)
    for (const path of linked(body)) expect(path.startsWith(way)).toBe(true)
  })

  it.for([
    ...[
      'main.js.map',
      'tsconfig.json',
      '..%2fdocument.js',
      '%2e%2e%2fdocument.js',
      'nothing.js',
      '__proto__',
    ],
  ])('are all that is there: not %s', async name => {
    const app = plain()
    const [style = ''] = linked((await get(app)).body)
    const reply = await get(app, {}, `/${style.replace('style.css', name)}`)
    expect(reply.status).toBe(404)
    expectEnvelope(reply)
  })
})
