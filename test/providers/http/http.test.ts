import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { http } from '../../../src/providers/http/index.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { failureOf } from '../../helpers/failure-of.ts'
import { upload } from '../../helpers/form.ts'
import { type Answer, play } from '../../helpers/player.ts'
import { objectOf } from '../../helpers/provider-contract.ts'
import { startApp } from '../../helpers/start-app.ts'
import { never, type Options, open as openProvider, problemOf } from '../../helpers/target.ts'
import { serve } from '../../uploader/sources/servers.ts'

const BYTES = Buffer.from('the bytes of a picture')
const PICTURE = objectOf('2026/a b/pic ture.png', BYTES, 'image/png')
const PAGE = '<!DOCTYPE html><title>Log in</title>'

const open = (options: Options) => openProvider(http, options)
/** Opens a destination at a host with this answer. `path` follows its URL. */
const openAt = async (answer: Answer, options: Options = {}, path = '') =>
  open({ url: (await play(answer)).url + path, ...options })

it.each(['https://img.example.com/{key}', '{responseurl}'])(
  'takes no page for stored where the answer says nothing else: %s',
  async resultUrl => {
    const raw = { method: 'PUT', body: 'raw', resultUrl }
    const page = { status: 200, body: PAGE, headers: { 'content-type': 'text/html' } }
    await expect((await openAt(page, raw, '/{key}')).put(PICTURE, never())).rejects.toThrow(
      'returned an HTML page',
    )
    const { url } = await (await openAt({ status: 201 }, raw, '/{key}')).put(PICTURE, never())
    expect(url).toMatch(/2026\/a%20b\/pic%20ture\.png$/)
  },
)

describe('what http sends', () => {
  it.each<[string, string, string?]>([
    ['/{filename}', '/pic%20ture.png'],
    ['/{key}', '/a%3Fb/c%23d%2520.png', 'a?b/c#d%20.png'],
    ['/{key}?k={key}', '/2026/a%20b/pic%20ture.png?k=2026/a%20b/pic%20ture.png'],
    ['/{base64:a?~}', '/YT9%2B'],
    // Credentials were percent-encoded before Base64.
    ['/{base64:{secret:token}|{filename}}', `/${Buffer.from('a/b?c|pic ture.png').toString('base64')}`],
    ['/{random:{filename}|{filename}}', '/pic%20ture.png'],
    ['/{secret:token}', '/a%2Fb%3Fc'],
    ['/{random:x|x}/{Y}', `/x/${new Date().getFullYear()}`],
    ['/a?b=c', '/a?b=c'],
  ])('goes to %s', async (path, expected, key = PICTURE.key) => {
    const { url, requests } = await play({ status: 200, body: 'https://img.example.com/a' })
    const target = await open({ url: url + path, secrets: { token: 'a/b?c' } })
    await target.put({ ...PICTURE, key }, never())
    expect(requests.map(request => request.url)).toEqual([expected])
  })

  it('never has a header that another one could hide in', async () => {
    const secrets = { t: 'a\r\nX-Evil: 1' }
    const target = await openAt({ status: 200 }, { headers: { 'X-Token': '{secret:t}' }, secrets })
    const put = target.put(PICTURE, never())
    await expect(put).rejects.toMatchObject({ code: 'destination_failed', retryable: false })
    await expect(put).rejects.toThrow('the header "X-Token" can\'t be sent')
  })

  it('is quoted when it refuses a file before it has read it, and is not sent the rest', async () => {
    let received = 0
    const { origin } = await serve((request, response) => {
      request.once('data', () => response.writeHead(413).end('no more than 1 MB'))
      request.on('data', chunk => {
        received += chunk.length
      })
    })
    const size = 500_000_000
    async function* read() {
      for (let i = 0; i < size / 1_000_000; i++) yield Buffer.alloc(1_000_000)
    }
    const put = (await open({ url: origin })).put({ ...PICTURE, size, read }, never())
    await expect(put).rejects.toThrow('returned 413 (the file is too large): no more than 1 MB')
    expect(received).toBeLessThan(size / 2)
  })
})

describe('where http finds the address', () => {
  const json = { ok: true, data: { url: 'https://img.example.com/a.png', path: '/a.png', id: 7 } }
  const html = '<a href="https://img.example.com/a (1).png">here</a>'
  const A = 'https://img.example.com/a.png'
  const NO_URL = /, which is not an http or https URL\./
  it.each<[string, string | string[] | undefined, unknown, string | RegExp]>([
    ['JSON', 'data.url', json, A],
    ['the text itself', undefined, ` ${A}\n`, A],
    ['a part of it', 'https://img.example.com{json:data.path}?v={json:data.id}', json, `${A}?v=7`],
    ['the first place that holds something', ['data.link', 'data.url', 'data.path'], json, A],
    ['a regular expression', '{regex:href="(.*?)"|1}', html, 'https://img.example.com/a%20%281%29.png'],
    ['a named group', '{regex:(?<scheme>https)://(?<rest>[^"]+)|rest}', html, NO_URL],
    ['XML', '{xml:/r/u}', `<r><u>${A}</u></r>`, A],
    ['the name it was given', 'https://x.org/{key}', '', 'https://x.org/2026/a%20b/pic%20ture.png'],
    ['nowhere', 'data.link', json, /returned no URL: \{"ok":true/],
    [
      ...([
        'attack: a response so long that a quadratic expression would take minutes',
        '{regex:a+b|$}',
      ] as const),
      ...([
        'a'.repeat(1_000_000),
        /more than 65536 characters, too many for the regular expression "a\+b"/,
      ] as const),
    ],
    ['in what is not JSON', 'data.link', html, /returned no URL: here/],
    ['a path alone', 'data.path', json, /returned "\/a\.png", which is not an http/],
    ['two addresses', undefined, `${A}\n${A}`, NO_URL],
    ['another scheme', undefined, 'javascript:alert(1)', NO_URL],
    ['no host', undefined, 'https:///a', NO_URL],
  ])('%s', async (_, resultUrl, body, expected) => {
    const put = (await openAt({ status: 200, body }, { resultUrl })).put(PICTURE, never())
    if (typeof expected === 'string') return await expect(put).resolves.toEqual({ url: expected })
    await expect(put).rejects.toMatchObject({ code: 'destination_failed', retryable: false })
    await expect(put).rejects.toThrow(expected)
    await expect(put).rejects.not.toThrow(/https?:\/\//)
  })

  it.each([
    ['{header:location}', 201, '/files/a.png'],
    ['{header:Location}', 302, '/files/a.png'],
    ['{responseurl}', 303, '/files/a.png'],
    ['https://img.example.com/{header:x-name}', 200, undefined],
  ])('a header: %s', async (resultUrl, status, location) => {
    const headers = { 'X-Name': 'b.png', ...(location && { Location: location }) }
    const { url: base } = await play({ status, headers })
    const target = await open({ url: `${base}/up/`, resultUrl })
    const url = location ? base + location : 'https://img.example.com/b.png'
    await expect(target.put(PICTURE, never())).resolves.toEqual({ url })
  })

  it.each(['utf8', 'latin1'] as const)('a header in %s', async encoding => {
    const raw = Buffer.from('/files/bücher.png', encoding).toString('latin1')
    const { url: base } = await play({ status: 201, headers: { Location: raw } })
    const target = await open({ url: `${base}/up/`, resultUrl: '{header:Location}' })
    const url = `${base}/files/b%C3%BCcher.png`
    await expect(target.put(PICTURE, never())).resolves.toEqual({ url })
  })

  it('but no redirect when that is not where the address is, and none that asks for another request', async () => {
    const headers = { Location: '/login' }
    const plain = await openAt({ status: 302, headers })
    await expect(plain.put(PICTURE, never())).rejects.toThrow('302 (a redirect')
    const strict = await openAt({ status: 307, headers }, { resultUrl: '{header:location}' })
    await expect(strict.put(PICTURE, never())).rejects.toThrow('307 (a redirect')
  })

  it.each([
    ['data.url', 'https://img.example.com/a.png'],
    ['https://img.example.com/remove/{json:data.id}', 'https://img.example.com/remove/7'],
    ['data.path', undefined],
    ['data.none', undefined],
  ])('that removes the file: %s', async (deleteUrl, expected) => {
    const target = await openAt({ status: 200, body: json }, { resultUrl: 'data.url', deleteUrl })
    const stored = await target.put(PICTURE, never())
    expect(stored.deleteUrl).toBe(expected)
  })
})

describe('what http counts as a failure', () => {
  const body = {
    code: 'bad',
    ok: false,
    n: 3,
    url: 'https://img.example.com/a',
    error: { message: 'too <b>big</b>' },
  }
  it.each([
    ['another value at that place', { success: { at: 'code', is: ['fine', 'ok'] } }, 200],
    ['no value there', { success: { at: 'status', is: [true] } }, 200],
    ['a false', { success: { at: 'ok', is: [true] } }, 200],
    ['a status that was not listed', { statuses: [201] }, 200],
    ['a status of failure', {}, 400],
  ])('%s', async (_, options, status) => {
    const errorMessage = ['message', 'error.message']
    const target = await openAt({ status, body }, { resultUrl: 'url', errorMessage, ...options })
    const put = target.put(PICTURE, never())
    await expect(put).rejects.toMatchObject({ code: 'destination_failed', retryable: false })
    await expect(put).rejects.toThrow(/: too big\./)
  })

  it.each([
    [{ success: { at: 'n', is: [3] } }, 200],
    [{ success: { at: 'n', is: ['3'] } }, 200],
    [{ success: { at: '{json:code}-{json:n}', is: ['bad-3'] } }, 200],
    [{ success: { at: '{header:X-Said}', is: ['yes'] } }, 200],
    [{ statuses: [304, 203] }, 203],
  ])('but not %j', async (options, status) => {
    const answer = { status, body, headers: { 'X-Said': 'yes' } }
    const target = await openAt(answer, { resultUrl: 'url', ...options })
    await expect(target.put(PICTURE, never())).resolves.toEqual({ url: body.url })
  })
})

describe('http gives nothing away:', () => {
  it('a secret that the host repeats', async () => {
    const body = 'the key "s3cret-key/+" in c2NyZXQta2V5 is wrong, s3cret-key%2F%2B too'
    const secrets = { k: 's3cret-key/+' }
    const target = await openAt({ status: 403, body }, { headers: { 'X-Key': '{secret:k}' }, secrets })
    const error = await failureOf(target.put(PICTURE, never()))
    expect(error.message).toContain('[secret]')
    expect(`${error.message} ${error.stack}`).not.toMatch(/s3cret-key/)
    expect(error.cause).toBeUndefined() // the log would have its message
  })

  it('a secret in the address of a host that is not there, also to the log', async () => {
    const { url, close } = await play({ status: 200 })
    await close()
    const target = await open({ url: `${url}/?key={secret:k}`, secrets: { k: 's3cret key' } })
    const error = await failureOf(target.put(PICTURE, never()))
    expect(error).toMatchObject({
      retryable: true,
      message: expect.stringContaining('it refuses connections'),
    })
    const cause = error.cause as Error
    expect(`${cause.message} ${cause.stack}`).not.toMatch(/s3cret/)
    expect(cause.message).toContain('ECONNREFUSED')
  })

  it('a credential of a ShareX file, which is in no secret of the configuration', async () => {
    const { url } = await play({ status: 400, body: 'token 0123456789 of user:a-long-password is wrong' })
    const file = await copySxcu('now', { RequestURL: url })
    const app = await startApp({ config: { providers: { http: { x: { sxcu: file } } } } })
    const answer = await upload(`${app.url}/upload`, { 'a.png': BYTES })
    expect(answer).toMatchObject({ status: 502, code: 'destination_failed' })
    expect(`${JSON.stringify(answer)} ${app.rawLog()}`).not.toMatch(/0123456789|a-long-password/)
  })
})

async function copySxcu(name: string, changes: object): Promise<string> {
  const text = await readFile(new URL(`../../fixtures/sxcu/${name}.sxcu`, import.meta.url), 'utf8')
  const file = join(await makeDirectory(), `${name}.sxcu`)
  await writeFile(file, JSON.stringify({ ...JSON.parse(text), ...changes }))
  return file
}

describe('http with a file of ShareX', () => {
  it('of an old version reads the answer', async () => {
    const { url } = await play({ status: 200, body: '{"hash":"abc","rest":"def|end"}' })
    const target = await open({ sxcu: await copySxcu('dollars', { RequestURL: url }) })
    await expect(target.put(PICTURE, never())).resolves.toEqual({
      url: 'https://img.example.com/f.php?h=abc&p=1',
      deleteUrl: 'https://img.example.com/f.php?h=abc&d=def',
    })
  })

  it('says when the configuration is read what can not be used', async () => {
    const validate = (options: Options) => problemOf(http, options)
    expect(validate({ sxcu: '/nowhere/at/all.sxcu' })).toBe('The file of "sxcu" can\'t be read (ENOENT).')
    expect(validate({ sxcu: await copySxcu('now', { Body: 'JSON' }) })).toContain('has the body "JSON"')
    expect(validate({ sxcu: await copySxcu('now', { URL: '{prompt:a}' }) })).toContain(
      'can\'t be used: "resultUrl" has {prompt}',
    )
    for (const [option, value] of Object.entries({
      url: 'https://img.example.com',
      method: 'PUT',
      body: 'raw',
      field: 'image',
      resultUrl: 'data.url',
      statuses: [201],
    }))
      expect(validate({ sxcu: 'a', [option]: value })).toBe(`Set "sxcu" or "${option}", not both.`)
  })
})

describe('http options', () => {
  const url = 'https://img.example.com/up'
  it.each([
    [{}, 'Set "url"'],
    [{ url: 'img.example.com' }, '"url" must be an http or https URL'],
    [{ url: 'ftp://img.example.com' }, '"url" must be'],
    [{ url: `${url}/{nope}` }, '"url" has the unknown placeholder {nope}'],
    [{ url: 'https://{filename}.example.com/' }, '"url" has {filename} in its host'],
    [{ url: 'https://example.com{key}' }, '"url" has {key} in its host'],
    [{ url: 'https://{random:a|{sha256}}/x' }, '"url" has {sha256} in its host'],
    [{ url: 'https://{base64:{key}}.example.com/x' }, '"url" has {key} in its host'],
    [{ url, resultUrl: '{filename}{json:url}' }, '"resultUrl" has {filename} in its host'],
    [{ url: 'https://{secret:host}{key}', secrets: { host: 'h' } }, '"url" has {key} in its host'],
    [{ url, resultUrl: ['url', 'https://{filename}/'] }, '"resultUrl" has {filename} in its host'],
    [{ url: `${url}/{json:a}` }, '"url" has the unknown placeholder {json}'],
    [{ url, resultUrl: 'a..b' }, '"resultUrl" has the unsupported JSON path "a..b"'],
    [{ url, resultUrl: ['a', '{regex:(}'] }, '"resultUrl" has the invalid regular expression "("'],
    [{ url, resultUrl: 'https://cdn.example.com/' }, '"resultUrl" has no placeholder'],
    [{ url, deleteUrl: '{xml:a[b]}' }, '"deleteUrl" has the unsupported XML path'],
    [{ url, success: { at: '{', is: [1] } }, '"success.at" has an unmatched "{"'],
    [{ url, headers: { 'a b': 'c' } }, '"headers" has "a b"'],
    [
      { url, headers: { 'Content-Length': '3' } },
      '"content-length", which is set automatically from the body',
    ],
    [{ url, headers: { 'content-type': 'a/b' } }, '"content-type", which is set automatically from the body'],
    [{ url, fields: { a: '{secret:x}' } }, '"fields.a" refers to {secret:x}'],
    [{ url, headers: { Authorization: 'Bearer abc' } }, 'Move the value of "Authorization" to "secrets"'],
    [{ url, headers: { 'X-API-Key': 'abc' } }, 'Move the value of "X-API-Key"'],
    [{ url, fields: { upload_password: 'abc' } }, 'Move the value of "upload_password"'],
    [{ url, query: { token: 'abc' } }, 'Move the value of "token"'],
    [{ url: `${url}?a=b&key=abc` }, 'Move the value of "key"'],
  ])('%j: %s', (options, words) => {
    expect(problemOf(http, options)).toContain(words)
  })

  it.each([
    { url },
    { url: `${url}?key={secret:k}`, secrets: { k: 'abc' } },
    { url, headers: { Authorization: 'Bearer {secret:k}' }, secrets: { k: 'abc' } },
    { url, fields: { key: '{key}', token: '' } },
    { url: 'https://{random:a|b}.example.com/{key}', resultUrl: '{json:base}/{key}' },
    { url: 'https://{secret:host}/{key}', secrets: { host: 'h' } },
    { url: 'https://{uuid}.example.com/{key}', resultUrl: '{json:base}{key}' },
    { url: 'https://example.com?name={filename}' },
    { url, body: 'raw', headers: { 'Content-Type': 'text/plain' } },
    { url, resultUrl: ['data.url', '{header:Location}'] },
  ])('%j is fine', options => {
    expect(problemOf(http, options)).toBeUndefined()
  })
})
