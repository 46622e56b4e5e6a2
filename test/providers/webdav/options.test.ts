import { describe, expect, it } from 'vitest'
import { webdav } from '../../../src/providers/webdav/index.ts'
import { failureOf } from '../../helpers/failure-of.ts'
import { type Answer, play } from '../../helpers/player.ts'
import { open, problemOf as problemIn, put } from '../../helpers/target.ts'

const url = 'https://dav.example.com/dav'
const login = { username: 'me', password: 'secret' }
const PROPERTIES = (size: number) =>
  `<D:multistatus xmlns:D="DAV:"><D:response><D:propstat><D:prop><D:getcontentlength>${size}</D:getcontentlength></D:prop></D:propstat></D:response></D:multistatus>`

const problemOf = (options: Record<string, unknown>) => problemIn(webdav, { url, ...options })

describe('the options', () => {
  it.each([
    [{}, undefined],
    [{ ...login, authType: 'digest' }, undefined],
    [{ ...login, username: 'a:b', authType: 'digest' }, undefined],
    [{ directory: '/img/blog/' }, undefined],
    [{ username: 'me' }, 'Set both'],
    [{ password: 'secret' }, 'Set both'],
    [{ ...login, username: 'a:b' }, 'must not contain a colon'],
    [{ url: 'dav.example.com' }, 'must be an http or https URL'],
    [{ url: 'ftp://dav.example.com' }, 'must be an http or https URL'],
    [{ url: 'https://me:secret@dav.example.com' }, 'must not contain credentials'],
    [{ url: 'https://dav.example.com/?x=1' }, 'must not have a query'],
    [{ directory: 'a/../b' }, 'without "." and ".."'],
    [{ directory: '.' }, 'without "." and ".."'],
    [{ directory: 'a\\b' }, 'without "." and ".."'],
    [{ urlSuffix: '" onload="x' }, 'characters that are valid in a URL'],
    [{ authType: 'ntlm' }, 'Invalid option'],
  ])('%j: %s', (options, problem) => {
    if (problem === undefined) expect(problemOf(options)).toBeUndefined()
    else expect(problemOf(options)).toContain(problem)
  })

  it.each([
    ['http://dav.example.com', 'basic', 1],
    ['http://192.0.2.1/dav', 'basic', 1],
    ['http://192.0.2.1/dav', 'digest', 0],
    ['https://dav.example.com', 'basic', 0],
    ['http://127.0.0.1:8080', 'basic', 0],
    ['http://localhost', 'basic', 0],
    ['http://[::1]/', 'basic', 0],
  ])('say when the password can be seen: %s, %s', async (url, authType, warnings) => {
    const warned: string[] = []
    await open(webdav, { url, authType, ...login }, { warn: message => void warned.push(message) })
    expect(warned).toHaveLength(warnings)
    expect(warned.join()).not.toContain('secret')
  })
})

describe('addresses of files', () => {
  const answer = ({ method }: { method: string }): Answer =>
    method === 'PROPFIND' ? { status: 207, body: PROPERTIES(1).replace('>1<', '>5<') } : { status: 201 }

  it.each([
    [{}, '/dav/a%20b/%C3%BC.png'],
    [{ directory: 'bilder ä/#1' }, '/dav/bilder%20%C3%A4/%231/a%20b/%C3%BC.png'],
    [
      { directory: 'x', urlPrefix: 'https://img.example.com/web/' },
      'https://img.example.com/web/a%20b/%C3%BC.png',
    ],
    [{ urlSuffix: '?x=1&y=!small' }, '/dav/a%20b/%C3%BC.png?x=1&y=!small'],
  ])('%j', async (options, expected) => {
    const { url: base } = await play(answer)
    const stored = await put(await open(webdav, { url: `${base}/dav/`, ...options }), 'a b/ü.png')
    expect(stored.url).toBe(expected.startsWith('/') ? base + expected : expected)
  })
})

describe('a server that does not do what it says', () => {
  /** What it answers to PUT, PROPFIND, HEAD and everything else. */
  type Answers = Readonly<Record<string, Answer>>
  const DONE = { status: 201 }
  const NOT_HERE = { status: 404 }
  const NO_DAV = { status: 405 }
  const PAGE = { status: 200, headers: { 'content-length': '5' } }
  it.each<[string, Answers, boolean, string]>([
    [
      'stores nothing',
      { PUT: DONE, else: NOT_HERE },
      true,
      'accepted the file, but did not store it. Try again',
    ],
    [
      'stores a part',
      { PROPFIND: { status: 207, body: PROPERTIES(3) }, else: DONE },
      true,
      'stored 3 of 5 bytes. Try',
    ],
    ['likes everything', { else: { status: 200, body: 'OK' } }, false, 'returned 200'],
    ['knows its methods', { HEAD: NOT_HERE, else: NO_DAV }, false, 'Check that "url" is a WebDAV URL'],
    [
      'answers 207 with a page',
      { PROPFIND: { status: 207, body: '<html>' }, else: DONE },
      false,
      'not a response of',
    ],
    [
      'has a page for every name',
      { HEAD: PAGE, PROPFIND: NO_DAV, else: DONE },
      false,
      'not a response of a WebDAV',
    ],
  ])('%s', async (_, answers, retryable, words) => {
    const { url } = await play(({ method }) => answers[method] ?? answers['else'] ?? DONE)
    const error = await failureOf(put(await open(webdav, { url }), 'a.png'))
    expect(error).toMatchObject({ code: 'destination_failed', retryable })
    expect(error.message).toContain(words)
  })

  it('refuses a login by Digest, which is sent once, since servers lock accounts', async () => {
    let nonce = 0
    const { url, requests } = await play(() => ({
      status: 401,
      headers: { 'WWW-Authenticate': `Digest realm="r", nonce="${++nonce}", qop="auth"` },
    }))
    const error = await failureOf(put(await open(webdav, { url, ...login, authType: 'digest' }), 'a.png'))
    expect(error.message).toContain('(it rejected the login). Check "username" and "password"')
    expect(requests.filter(({ headers }) => headers['authorization'])).toHaveLength(1)
  })

  it('finds its own nonces too old: the whole file is sent again with a new one', async () => {
    let nonce = 1
    const { url, requests } = await play(({ method, headers }) => {
      const isRight = headers['authorization']?.includes(` nonce="${nonce}"`)
      if (isRight && method === 'PUT' && nonce < 3) nonce++
      else if (isRight) return method === 'PROPFIND' ? { status: 207, body: PROPERTIES(5) } : { status: 201 }
      const stale = headers['authorization'] === undefined ? '' : ', stale=true'
      return {
        status: 401,
        headers: { 'WWW-Authenticate': `Digest realm="r", nonce="${nonce}", qop="auth"${stale}` },
      }
    })
    await put(await open(webdav, { url, ...login, authType: 'digest' }), 'a.png')
    expect(requests.map(({ method, size }) => `${method} ${method === 'PUT' ? size : ''}`.trim())).toEqual([
      ...['PROPFIND', 'PROPFIND', 'PUT 5', 'PUT 5', 'PUT 5', 'PROPFIND', 'MOVE', 'PROPFIND'],
    ])
  })
})
