import { expect, it } from 'vitest'
import { openlist } from '../../src/providers/openlist.ts'
import { type Answer, play } from '../helpers/player.ts'
import { never, type Options, open, problemOf, put } from '../helpers/target.ts'

// github.com/OpenListTeam/OpenList: server/handles/fsup.go, fsread.go, fsmanage.go, auth.go

const say = (code: number, message: string, data: unknown = null): Answer => ({
  status: 200,
  body: { code, message, data },
})
const DONE = say(200, 'success')
const ME = say(200, 'success', { id: 2, username: 'u', base_path: '/home', role: 0, disabled: false })
const LOGGED_IN = say(200, 'success', { token: 'session' })
const ENDED = say(401, 'token is invalidated')
const found = (size: number, is_dir = false) =>
  say(200, 'success', { name: 'a.txt', size, is_dir, sign: 'aB-_=:0' })
const ABSENT = say(500, 'failed get obj: /home/img/a.txt: object not found')

/** A destination at a server that gives these answers. */
async function start(answers: Answer[], options: Options = {}) {
  const player = await play(answers)
  const login = 'username' in options ? {} : { token: 'openlist-0123456789' }
  const target = await open(openlist, { url: player.url, directory: '/img', ...login, ...options })
  return { ...player, target }
}
const LOGIN = { username: 'u', password: 'password ü' }

it('a file is stored, found, linked with its signature, and removed', async () => {
  const answers = [ME, DONE, found(5), found(5), found(5), DONE, ABSENT, ABSENT]
  const { url, target, requests, lines } = await start(answers, { directory: '/local/ü img/' })
  expect(await put(target, 'a b.txt')).toEqual({
    url: `${url}/d/home/local/%C3%BC%20img/a%20b.txt?sign=aB-_%3D%3A0`,
  })
  expect(await target.exists?.('a b.txt', never())).toBe(true)
  await target.remove?.('a b.txt', never())
  expect(await target.exists?.('a b.txt', never())).toBe(false)
  const look = 'POST /api/fs/get'
  expect(lines()).toEqual([
    ...['GET /api/me', 'PUT /api/fs/put', look, look, look, 'POST /api/fs/remove', look, look],
  ])
  for (const { headers } of requests) expect(headers['authorization']).toBe('openlist-0123456789')
  expect(requests[1]).toMatchObject({
    text: 'bytes',
    headers: { 'file-path': '/local/%C3%BC%20img/a%20b.txt', 'content-length': '5' },
  })
  expect([requests[2], requests[5]].map(request => JSON.parse(request?.text ?? ''))).toEqual([
    { path: '/local/ü img/a b.txt' },
    { dir: '/local/ü img', names: ['a b.txt'] },
  ])
})

it('a login that has ended is made anew, and the file is sent once more', async () => {
  const { target, requests, lines } = await start(
    [LOGGED_IN, ME, ENDED, say(200, 'success', { token: 'second' }), DONE, found(5)],
    LOGIN,
  )
  await put(target, 'a.txt')
  expect(JSON.parse(requests[0]?.text ?? '')).toEqual(LOGIN)
  const sent = requests.map(({ headers }, index) => `${lines()[index]} ${headers['authorization'] ?? ''}`)
  expect(sent).toEqual([
    ...['POST /api/auth/login ', 'GET /api/me session', 'PUT /api/fs/put session'],
    ...['POST /api/auth/login ', 'PUT /api/fs/put second', 'POST /api/fs/get second'],
  ])
  expect(requests[4]?.text).toBe('bytes')
})

it('a login that failed is made again', async () => {
  const { target } = await start([say(500, 'busy'), LOGGED_IN, ME, DONE, found(5)], LOGIN)
  await expect(put(target, 'a.txt')).rejects.toMatchObject({
    retryable: true,
    message: expect.stringContaining('busy (500)'),
  })
  await put(target, 'a.txt')
})

it.each<[string, Answer[], boolean, RegExp]>([
  ['a file of another size', [ME, DONE, found(4)], true, /the file is not there/],
  ['a folder of its name', [ME, DONE, found(5, true)], true, /the file is not there/],
  [
    'a put that is refused',
    [ME, say(403, 'no https://x.org')],
    false,
    /did not store it: no x\.org \(403\)\./,
  ],
  [
    'a wrong token, once',
    [ENDED],
    false,
    /did not identify the user: token is invalidated \(401\)\. Check "token"/,
  ],
  [
    'a login page',
    [{ status: 200, body: '<html>' }],
    false,
    /did not return a response of OpenList\. Check "url"/,
  ],
  [
    'JSON of another server',
    [{ status: 200, body: { ok: true } }],
    false,
    /not return a response of OpenList/,
  ],
  ['a broken connection', [ME, { status: 0 }], true, /can't be reached/],
])('is not stored: %s', async (_, answers, retryable, message) => {
  const { target, requests } = await start(answers)
  await expect(put(target, 'a.txt')).rejects.toMatchObject({
    retryable,
    message: expect.stringMatching(message),
  })
  expect(requests).toHaveLength(answers.length)
})

it('a file that is still there is not removed, and a folder is left alone', async () => {
  const { target } = await start([found(5), DONE, found(5), found(0, true)])
  await expect(target.remove?.('a.txt', never())).rejects.toThrow('but it still exists')
  expect(await target.exists?.('a.txt', never())).toBe(false)
})

it('a check logs in', async () => {
  const { target } = await start([say(400, 'username or password is incorrect')], LOGIN)
  await expect(target.check?.(never())).rejects.toThrow(
    /did not log in: username or password is incorrect \(400\)/,
  )
})

it.each([
  [{ token: 'a', username: 'b', password: 'c' }, /"token", or "username"/],
  [{}, /"token", or "username"/],
  [{ username: 'b' }, /Set both/],
])('openlist with %j is refused', (options, reason) => {
  expect(problemOf(openlist, { url: 'https://list.example.com', directory: '/x', ...options })).toMatch(
    reason,
  )
})
