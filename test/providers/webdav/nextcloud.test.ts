import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { webdav } from '../../../src/providers/webdav/index.ts'
import { failureOf } from '../../helpers/failure-of.ts'
import { type Answer, type Played, play } from '../../helpers/player.ts'
import { never, open, put } from '../../helpers/target.ts'

// docs.nextcloud.com/server/latest/developer_manual/client_apis/WebDAV/basic.html, "Public shares"; nextcloud/server
// apps/dav/appinfo/v2/publicremote.php and apps/dav/lib/Connector/Sabre/PublicAuth.php

const PAGE = readFileSync(new URL('../../../docs/destinations/webdav.md', import.meta.url), 'utf8')
const [, TEXT = ''] =
  /public links[\s\S]*?^```json\n([\s\S]*?)^```$/m.exec(PAGE.slice(PAGE.indexOf("## Nextcloud's"))) ?? []

const BYTES = 5

const properties = (path: string) =>
  `<?xml version="1.0"?><d:multistatus xmlns:d="DAV:" xmlns:s="http://sabredav.org/ns" xmlns:oc="http://owncloud.org/ns"><d:response><d:href>${path}</d:href><d:propstat><d:prop>${
    path.endsWith('/')
      ? '<d:resourcetype><d:collection/></d:resourcetype>'
      : `<d:resourcetype/><d:getcontentlength>${BYTES}</d:getcontentlength>`
  }</d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response></d:multistatus>`

const fault = (status: number, name: string, message: string): Answer => ({
  status,
  headers: {
    'Content-Type': 'application/xml; charset=utf-8',
    ...(status === 401 && { 'WWW-Authenticate': 'Basic realm="Nextcloud", charset="UTF-8"' }),
  },
  body: `<?xml version="1.0" encoding="utf-8"?><d:error xmlns:d="DAV:" xmlns:s="http://sabredav.org/ns"><s:exception>Sabre\\DAV\\Exception\\${name}</s:exception><s:message>${message}</s:message></d:error>`,
})

function answer({ method, url }: Played): Answer {
  return method === 'PROPFIND' ? { status: 207, body: properties(url) } : { status: 201 }
}

/** A recipe of the page, with another host. */
async function openRecipe(name: string, reply: (request: Played) => Answer, more = {}) {
  const { url: base, requests } = await play(reply)
  const recipes = JSON.parse(TEXT.replaceAll('https://cloud.example.com', base)).providers.webdav
  return { base, requests, target: await open(webdav, { ...recipes[name], ...more }) }
}

it.each([
  [403, false],
  [404, false],
  [415, false],
  [500, true],
])('a MOVE that is refused with %s names the option that does without', async (status, retryable) => {
  const refuse = (request: Played) => (request.method === 'MOVE' ? { status } : answer(request))
  const { target } = await openRecipe('nextcloud', refuse)
  const error = await failureOf(put(target, 'a.png'))
  expect(error.message).toContain(`returned ${status} (it cannot rename files, does not allow it`)
  expect(error.message).toContain('Set "atomic" to false.')
  expect(error.retryable).toBe(retryable)
})

it('without "atomic", nothing has a name with a leading dot, and nothing is moved', async () => {
  let isRemoved = false
  const reply = (request: Played) => {
    if (request.method === 'DELETE') isRemoved = true
    if (request.method === 'PROPFIND' && isRemoved) return { status: 404 }
    const { status, body } = answer(request)
    return { status, body: String(body ?? '').replace(/<d:getcontentlength>.*?<\/d:getcontentlength>/, '') }
  }
  const { target, requests } = await openRecipe('nextcloud', reply, { atomic: false })
  await put(target, 'a.png')
  await target.check?.(never())
  expect(requests.filter(({ method, url }) => method === 'MOVE' || url.includes('/.'))).toEqual([])
})

it('an account writes, and a public link that only reads is linked', async () => {
  const { base, target, requests } = await openRecipe('nextcloud', answer, { password: 'app-0123456789' })
  const stored = await put(target, '2026/ü.png')
  expect(stored.url).toBe(`${base}/public.php/dav/files/aBcDeFgHiJkLmNo/2026/%C3%BC.png`)
  const folder = '/remote.php/dav/files/me/Pictures/blog/2026/'
  for (const { method, url } of requests.filter(({ method }) => method === 'PUT' || method === 'MOVE'))
    expect(`${method} ${url}`).toContain(folder)
  expect(requests.at(-1)?.headers['authorization']).toBe(`Basic ${btoa('me:app-0123456789')}`)
  expect(requests.find(({ method }) => method === 'MOVE')?.headers['destination']).toBe(
    `${base + folder}%C3%BC.png`,
  )
})

it('a public link that may be edited takes files without a login', async () => {
  const { base, target, requests } = await openRecipe('nextcloud-link', answer)
  const stored = await put(target, '2026/a.png')
  expect(stored.url).toBe(`${base}/public.php/dav/files/oNmLkJiHgFeDcBa/2026/a.png`)
  expect(requests.map(({ headers }) => headers['authorization'])).toEqual(requests.map(() => undefined))
})

it('a public link with a password gets it from "anonymous"', async () => {
  const login = { username: 'anonymous', password: 'share-0123456789' }
  const { target, requests } = await openRecipe('nextcloud-link', answer, login)
  await put(target, 'a.png')
  expect(requests.find(({ method }) => method === 'PUT')?.headers['authorization']).toBe(
    `Basic ${btoa('anonymous:share-0123456789')}`,
  )
})

it.each([
  ['asks for a password', fault(401, 'NotAuthenticated', 'No public access to this resource.'), '401'],
  ['may not be edited', fault(403, 'Forbidden', 'You are not allowed to create files'), '403'],
  ['is gone', fault(404, 'NotFound', ''), '404'],
])('a public link that %s is refused, with nothing stored', async (_, refusal, says) => {
  const { target } = await openRecipe('nextcloud-link', () => refusal)
  const error = await failureOf(put(target, 'a.png'))
  expect(error).toMatchObject({ code: 'destination_failed', retryable: false })
  expect(error.message).toContain(says)
})
