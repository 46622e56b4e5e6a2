import { connect } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createLog } from '../src/log.ts'
import { createLogLines } from '../src/log-lines.ts'
import { ask, type Question } from './helpers/ask.ts'
import { eventually } from './helpers/eventually.ts'
import { formOf, list, post, upload } from './helpers/form.ts'
import { startGate } from './helpers/gate.ts'
import { expectNoSecret } from './helpers/secrets.ts'
import { shareApp, startApp, type TestApp } from './helpers/start-app.ts'

const KEY = 'k3y/0f+the server=&"'
const WRONG = 'wr0ng/key+of a=&"stranger'
/** Makes a request one that needs the key. */
const STRANGER = { 'X-Forwarded-For': '203.0.113.9' }

it('the upload key is in no answer and no line, right or wrong, wherever it is sent', async () => {
  const config = { server: { key: KEY }, auth: { maxFailures: 0 }, log: { level: 'trace' } }
  const app = await startApp({ config })
  const replies: string[] = []
  const send = async (method: string, target: string, headers: Question['headers'], body?: string) => {
    const question = { headers, ...(body !== undefined && { body }) }
    replies.push(JSON.stringify(await ask(app.url, method, target, question)))
  }
  for (const key of [KEY, WRONG]) {
    const encoded = encodeURIComponent(key)
    const basic = `Basic ${Buffer.from(`:${key}`).toString('base64')}`
    const targets = [
      ...['key', 'secret', 'token', 'a?key'].map(name => `/upload?${name}=${encoded}`),
      ...[`/upload?${new URLSearchParams({ key })}`, `http://user:${encoded}@localhost/upload`],
    ]
    const headers = [
      ...['X-Upload-Key', 'X-PicGo-Secret', 'Authorization'].map(name => ({ [name]: key })),
      ...[{ Authorization: `Bearer ${key}` }, { Authorization: basic }],
      { Cookie: `key=${encoded}`, Referer: `http://localhost/?key=${encoded}` },
    ]
    const ways = [
      ...targets.map(target => [target, {}] as const),
      ...headers.map(one => ['/upload', one] as const),
    ]
    for (const [target, one] of ways) {
      for (const method of ['GET', 'PUT', 'OPTIONS'])
        await send(method, target.replace('/upload', '/no'), one)
      for (const body of ['{"list":["data:,hello"]}', 'no JSON'])
        for (const who of [STRANGER, {}]) await send('POST', target, { ...who, ...one }, body)
    }
  }
  expectNoSecret(replies.join() + app.rawLog(), { key: WRONG })
  // Where a key has no place.
  const encoded = encodeURIComponent(KEY)
  const names = ['picbed', 'configName', 'finalizationId'].map(name => `upload?${name}=${encoded}`)
  for (const path of [...names, `upload/${encoded}`, encoded]) await send('POST', `/${path}`, {}, KEY)
  for (const name of ['X-Request-Id', 'Content-Encoding'])
    await send('POST', '/upload', { [name]: KEY }, JSON.stringify({ list: [`relative/${KEY}`] }))
  expectNoSecret(replies.join() + app.rawLog(), { key: KEY })
})

it('credentials inside the addresses of a list are not logged', async () => {
  const gate = await startGate()
  gate.open()
  const app = await startApp({ config: { log: { level: 'trace' } } })
  const hosts = [new URL(gate.url).host, '127.0.0.1:1', 'nowhere.invalid', '']
  for (const entry of [
    ...hosts.map(host => `http://someone:p4ssw0rd@${host}/x`),
    'ftp://someone:p4ssw0rd@127.0.0.1/x',
    'https://someone:p4ssw0rd@127.0.0.1:1/x?token=p4ssw0rd',
  ]) {
    const answer = await post(`${app.url}/upload`, list(entry))
    expect(answer.message ?? '').not.toContain('p4ssw0rd')
  }
  expect(app.rawLog()).not.toContain('p4ssw0rd')
})

it('a query that is hidden takes nothing of the sentence with it', () => {
  const lines: string[] = []
  const stream = { write: (text: string) => void lines.push(JSON.parse(text).msg) }
  const log = createLog({ level: 'info', mask: text => text, stream })
  log.warn('It led to https://me:pw@host/a?token=secret: nothing was sent (see https://host/b?x=1).')
  log.warn('https://host/?')
  expect(lines).toEqual([
    'It led to https://host/a?[hidden]: nothing was sent (see https://host/b?[hidden]).',
    'https://host/?[hidden]',
  ])
})

describe('one line for each request', () => {
  const line = (app: TestApp, id: string) => {
    const lines = app.log.filter(entry => entry['requestId'] === id)
    expect(lines).toHaveLength(1)
    return lines[0]
  }
  const headers = { 'X-Request-Id': 'this-one' }

  it('says who uploaded what, where to, and how it went', async () => {
    const app = await startApp()
    const body = formOf({ 'a.txt': 'hello', 'b.txt': 'hello world' })
    expect(await post(`${app.url}/upload?picbed=local&key=x`, { body, headers })).toMatchObject({
      status: 200,
    })
    expect(line(app, 'this-one')).toMatchObject({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      req: { method: 'POST', path: '/upload' },
      res: { status: 200 },
      caller: 'loopback',
      admittedBy: 'loopback',
      address: '127.0.0.1',
      destination: 'local/Default',
      inputs: 2,
      stored: 2,
      bytes: 16,
      ms: expect.any(Number),
      msg: 'response sent',
    })
  })

  it('with compat.alwaysOk a failure is no less a failure', async () => {
    const app = await startApp({ config: { compat: { alwaysOk: true } } })
    const body = '{"list":["/nowhere.png"]}'
    expect(await ask(app.url, 'POST', '/upload', { headers, body })).toMatchObject({ status: 200 })
    expect(line(app, 'this-one')).toMatchObject({
      level: 'warn',
      res: { status: 200 },
      msg: 'Request failed',
    })
  })

  it('says whole what the client is told, and for people, too', async () => {
    const app = await startApp({ config: { server: { key: KEY }, metrics: { enabled: true } } })
    for (const [id, method, target] of [
      ['an-upload', 'POST', '/upload'],
      ['a-scraper', 'GET', '/metrics'],
    ] as const) {
      const { body } = await ask(app.url, method, target, {
        headers: { 'X-Request-Id': id, ...STRANGER },
      })
      const { message } = JSON.parse(body)
      expect(message).toMatch(/Authorization: Bearer (?:KEY|TOKEN)[.].*$/)
      const entry = line(app, id)
      expect(entry).toMatchObject({ err: { message } })
      expect(createLogLines(false)(JSON.stringify(entry))).toContain(message)
    }
  })

  it('says that the client left in the middle of a form, and names its files', async () => {
    const app = await startApp()
    const { hostname, port } = new URL(app.url)
    const part = (name: string) =>
      `--b\r\nContent-Disposition: form-data; name="f"; filename="${name}"\r\n\r\nx\r\n`
    const head = 'Host: localhost\r\nX-Request-Id: this-one\r\nContent-Type: multipart/form-data; boundary=b'
    const socket = connect(Number(port), hostname)
    socket.end(
      `POST /upload HTTP/1.1\r\n${head}\r\nContent-Length: 999\r\n\r\n${part('a.png')}${part('b.png')}`,
    )
    onTestFinished(() => void socket.destroy())
    await eventually(() =>
      expect(line(app, 'this-one')).toMatchObject({ msg: 'client disconnected', failed: ['a.png', 'b.png'] }),
    )
    expect(app.rawLog()).not.toContain('not valid HTTP')
    expect(app.log.filter(({ level }) => level === 'warn')).toEqual([])
  })

  it('says that the client left during the upload, and names its files', async () => {
    const gate = await startGate()
    const app = await startApp()
    const leave = new AbortController()
    const sent = post(`${app.url}/upload`, { ...list(gate.url, gate.url), headers, signal: leave.signal })
    await gate.reached(1)
    leave.abort()
    await expect(sent).rejects.toThrow()
    await eventually(() =>
      expect(line(app, 'this-one')).toMatchObject({
        msg: 'client disconnected',
        failed: [gate.url, gate.url],
      }),
    )
  })

  it('says that the shutdown cut an upload, not that the client left', async () => {
    const gate = await startGate()
    const app = await startApp({ config: { shutdown: { grace: '0ms' } } })
    const sent = post(`${app.url}/upload`, { ...list(gate.url), headers })
    await gate.reached(1)
    await Promise.all([app.server.stop(), expect(sent).rejects.toThrow()])
    expect(line(app, 'this-one')).toMatchObject({
      msg: 'Request failed',
      level: 'error',
      err: { code: 'shutting_down', message: expect.stringMatching(/^The server shut down/) },
      failed: [gate.url],
    })
  })

  it('names the files of several that exceeded a quota', async () => {
    const keys = [{ name: 'ci', key: KEY, quota: { files: 1, per: '1d' } }]
    const app = await startApp({ config: { auth: { keys, loopbackExempt: false } } })
    const body = formOf({ 'a.txt': 'a', 'b.txt': 'b', 'c.txt': 'c' })
    const { items } = await post(`${app.url}/upload`, { body, headers: { ...headers, 'X-Upload-Key': KEY } })
    const stored = items.map(({ origin }) => origin)
    const failed = ['a.txt', 'b.txt', 'c.txt'].filter(name => !stored.includes(name))
    expect(line(app, 'this-one')).toMatchObject({ code: 'quota_exceeded', failed })
    expect(failed).toHaveLength(2)
  })

  it('is one line, whatever the client sends', async () => {
    const app = await startApp()
    const answer = await upload(`${app.url}/upload`, { 'a\n{"level":"fatal"}\r\n\u001b[31m.txt': 'hello' })
    expect(answer.status).toBe(200)
    await ask(app.url, 'GET', '/%0a%7b%22level%22%3a%22fatal%22%7d')
    expect(app.log.filter(entry => entry['level'] === 'fatal')).toEqual([])
    expect(app.rawLog()).not.toContain('\u001b')
  })
})

const shared = shareApp()

it.for(['/', 'http://127.0.0.1:1/', 'http://', 'a:', 'a'])(
  'megabytes behind "%s" in a list take no megabytes of the log or the message',
  async begin => {
    const app = shared()
    const [before, lines] = [app.rawLog().length, app.log.length]
    const answer = await post(`${app.url}/upload`, list(begin.padEnd(3_000_000, begin)))
    expect(answer.status).toBeGreaterThanOrEqual(400)
    expect(answer.message.length).toBeLessThan(3000)
    await eventually(() => expect(app.log).toHaveLength(lines + 1))
    expect(app.rawLog().length - before).toBeLessThan(30_000)
  },
)

it('heartbeats are not logged as long as they succeed, but at debug', async () => {
  for (const level of ['info', 'debug']) {
    const app = await startApp({ config: { log: { level } } })
    for (const target of ['/heartbeat', '/heartbeat/', '//heartbeat?x=1'])
      for (const method of ['GET', 'POST', 'HEAD']) await ask(app.url, method, target)
    const beats = app.log.filter(line => 'req' in line)
    expect(beats).toMatchObject(level === 'info' ? [] : Array(9).fill({ level, res: { status: 200 } }))
    await ask(app.url, 'PUT', '/heartbeat')
    expect(app.log.at(-1)).toMatchObject({ level: 'warn', res: { status: 405 } })
  }
})

it.each<[traceparent: string, isLogged: boolean]>([
  ['00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', true],
  ['00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01', false],
  [`00-${'0'.repeat(5000)}`, false],
  ['my secret', false],
])('the trace context %s of a request is in its line if it is valid', async (traceparent, isLogged) => {
  const { headers } = await ask(shared().url, 'GET', '/files/Default/none', { headers: { traceparent } })
  const find = () => shared().log.find(one => one['requestId'] === headers['x-request-id'])
  await expect.poll(find).toBeDefined()
  expect(find()?.['traceparent']).toBe(isLogged ? traceparent : undefined)
})

describe('a line of the log on a terminal', () => {
  const request = { time: '2026-01-01T00:00:00.000Z', req: { method: 'POST', path: '/upload' }, ms: 7 }
  const show = (...entries: object[]) => {
    const toLines = createLogLines(false)
    return entries.map(entry =>
      toLines(`${JSON.stringify({ ...request, ...entry })}\n`).replace(/^.{9}/gm, ''),
    )
  }
  const refused = { level: 'warn', res: { status: 401 }, address: '203.0.113.9', err: { message: 'No key.' } }

  const files = ['a', 'b', 'c', 'd'].map(name => ({ name, error: 'The disk is full.' }))
  const full = { errors: ['The disk is full.'], err: { message: 'The disk is full.' } }
  const stored = { name: 'a\u001b[2J\u202e\nb.png', size: 1, url: 'x' }
  const ours = {
    ...{ code: 'internal_error', message: 'Something went wrong.' },
    cause: { stack: 'Error: x\n    at y' },
  }

  it.each<[what: string, entries: object[], shown: (string | RegExp)[]]>([
    [
      'says who was refused and why, and the same sentence only once',
      [refused, refused],
      [
        '✗ POST /upload from 203.0.113.9: No key.\n',
        '✗ POST /upload from 203.0.113.9: same error as above\n',
      ],
    ],
    [
      'says once what failed for several files of a request',
      [{ level: 'warn', files, ...full }],
      ['✗ a, b, c and 1 more: The disk is full.\n'],
    ],
    ['is left out for what only looks', [{ level: 'info', res: { status: 200 } }], ['']],
    [
      'has the stack of a mistake of ours',
      [{ level: 'error', res: { status: 500 }, err: ours }],
      [/Something went wrong\.\n(?:.*\n)*.*at y\n/],
    ],
    [
      'moves no cursor, whatever a name holds',
      [{ level: 'info', files: [stored] }],
      ['✓ a?[2J??b.png  1 B → x  7 ms\n'],
    ],
  ])('%s', (_, entries, shown) => {
    expect(show(...entries)).toEqual(
      shown.map(one => (typeof one === 'string' ? one : expect.stringMatching(one))),
    )
  })

  it('is shown as it is when it is no JSON', () => {
    expect(createLogLines(false)('not\u001b JSON\n')).toBe('not? JSON\n')
  })
})
