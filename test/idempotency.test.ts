import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { runCli } from './cli/run-cli.ts'
import { makeDirectory } from './helpers/directory.ts'
import { download, formOf, list, post } from './helpers/form.ts'
import { startGate } from './helpers/gate.ts'
import { shareApp, startApp, type TestApp } from './helpers/start-app.ts'

// What becomes of a repetition in each state of the first request stands in test/store/uploads.test.ts.

const keyTemplate = '{uuid}{extname}'
const folder = (directory: string, more = {}) => ({ directory, serve: true, ...more })

function send(app: TestApp, key: string, files: Record<string, string>, query = '') {
  return post(`${app.url}/upload${query}`, { body: formOf(files), headers: { 'Idempotency-Key': key } })
}

/** Links lead to the server that answers, so a later one has the same only at the same port. */
const portOf = (app: TestApp) => Number(new URL(app.url).port)

it('takes both spellings of a destination for one request, and leaves no temporary file of a repetition', async () => {
  const app = await startApp({ config: { keyTemplate } })
  const queries = ['?picbed=local&configName=Default', '?destination=local/Default', '?destination=local', '']
  for (const query of queries) {
    const answer = await send(app, 'k1', { 'a.png': 'one'.repeat(1_000_000) }, query)
    expect([query, answer.status, answer.success]).toEqual([query, 200, true])
  }
  await expect.poll(app.files).toHaveLength(1)
})

it('answers a repetition with the first answer, also after a restart', async () => {
  const app = await startApp({ config: { keyTemplate } })
  const first = await send(app, 'k1', { 'a.png': 'one' })
  expect((await send(app, '"k1"', { 'a.png': 'one' })).items).toEqual(first.items)
  await app.server.stop()
  const server = { port: portOf(app) }
  const next = await startApp({ config: { keyTemplate, server }, directory: app.directory })
  expect((await send(next, 'k1', { 'a.png': 'one' })).items).toEqual(first.items)
  expect(await next.files()).toHaveLength(1)
})

it('a repetition got the link of a file that had been removed', async () => {
  const app = await startApp({ config: { keyTemplate } })
  const files = { 'a.png': 'one', 'b.png': 'two' }
  const first = await send(app, 'k1', files)
  const place = { cwd: app.directory, env: { XDG_DATA_HOME: join(app.directory, 'data') } }
  expect((await runCli(['remove', first.result[1] as string, '--yes'], place)).code).toBe(0)
  const again = await Promise.all([1, 2, 3].map(() => send(app, 'k1', files)))
  expect(new Set(again.map(({ result }) => result[1])).size).toBe(1)
  expect(String(await download(again[2]?.result[1] ?? ''))).toBe('two')
  expect((await send(app, 'k1', files)).items).toEqual(again[0]?.items)
  expect(await send(app, 'k1', { 'a.png': 'other' })).toMatchObject({ code: 'idempotency_key_reused' })
})

it('attack: a client asks for the answer of another one with its Idempotency-Key', async () => {
  const keys = ['alice', 'bob'].map(name => ({ name, key: `k3y-0f-${name}-12345678` }))
  const app = await startApp({ config: { keyTemplate, auth: { loopbackExempt: false, keys } } })
  const sendBy = (client: number) => {
    const headers = { 'Idempotency-Key': 'k1', 'X-Upload-Key': keys[client]?.key ?? '' }
    return post(`${app.url}/upload`, { body: formOf({ 'a.png': 'one' }), headers })
  }
  const [first, other, again] = [await sendBy(0), await sendBy(1), await sendBy(0)]
  expect(other).toMatchObject({ status: 200 })
  expect(other.result).not.toEqual(first.result)
  expect(again.result).toEqual(first.result)
})

it('goes on with a request whose client has left, for the repetition', async () => {
  const gate = await startGate()
  const app = await startApp({ config: { keyTemplate } })
  const leave = new AbortController()
  const request = { ...list(gate.url), headers: { 'Idempotency-Key': 'k1', ...list().headers } }
  const sent = post(`${app.url}/upload`, { ...request, signal: leave.signal })
  await gate.reached(1)
  leave.abort()
  await expect(sent).rejects.toThrow()
  await expect.poll(() => app.rawLog()).toContain('client disconnected')
  gate.open()
  await expect.poll(app.files).toHaveLength(1)
  expect(await post(`${app.url}/upload`, request)).toMatchObject({ status: 200 })
  expect(await app.files()).toHaveLength(1)
})

describe('a key with another request', () => {
  const local = { first: folder('one'), second: folder('two') }
  const shared = shareApp({ config: { keyTemplate, default: 'local/first', providers: { local } } })

  it.each<[what: string, files: Record<string, string>, query?: string]>([
    ['other bytes', { 'a.png': 'two' }],
    ['another name', { 'b.png': 'one' }],
    ['one more file', { 'a.png': 'one', 'b.png': 'two' }],
    ['another destination', { 'a.png': 'one' }, '?configName=second'],
  ])('%s: is refused', async (_, files, query) => {
    await send(shared(), 'k1', { 'a.png': 'one' })
    expect(await send(shared(), 'k1', files, query)).toMatchObject({
      status: 422,
      code: 'idempotency_key_reused',
    })
    expect(await shared().files()).toHaveLength(1)
  })
})

describe('the same keyed request was called another one', () => {
  it('once larger files were allowed, and is another one when what was too large is other bytes', async () => {
    const directory = await makeDirectory()
    const startTaking = (fileSize: number, port = 0) =>
      startApp({ directory, config: { limits: { fileSize: `${fileSize}B` }, server: { port } } })
    const few = await startTaking(3)
    const files = { 'a.txt': 'one', 'b.txt': 'larger' }
    const first = await send(few, 'k1', files)
    expect(first).toMatchObject({ status: 413 })
    expect(await send(few, 'k1', { ...files, 'b.txt': 'Larger' })).toMatchObject({ status: 422 })
    await few.server.stop()
    const more = await startTaking(100, portOf(few))
    expect((await send(more, 'k1', files)).items).toEqual(first.items)
  })

  it('when a body was refused before it was read: that is told, and no key is used up', async () => {
    const app = await startApp({ config: { limits: { fileSize: '3B' } } })
    for (const [body, status] of [
      ['one', 200],
      ['larger', 413],
      ['one', 200],
    ] as const) {
      const init = { method: 'PUT', body, headers: { 'Idempotency-Key': 'k1' } }
      expect(await post(`${app.url}/upload/a.txt`, init)).toMatchObject({ status })
    }
  })
})

describe('a key', () => {
  const shared = shareApp({ config: { keyTemplate } })
  const TOO_LONG = 'x'.repeat(256)

  it.each(['', '""', 'a b', TOO_LONG, `"${TOO_LONG}"`, '"open', '"a"b"', '"\\a"', '"k", "l"', 'clé'])(
    'is not %s',
    async key => {
      const answer = await send(shared(), key, { 'a.png': 'one' })
      expect(answer).toMatchObject({ status: 400, code: 'invalid_request' })
      expect(answer.message).toContain('1 to 255 visible ASCII characters')
    },
  )

  it.each([
    ['k1', '"k1"'],
    ['"k1"', '"k1";a=1; b="x"'],
    ['"a b"', '"a b" '],
    ['"a\\"\\\\"', '"a\\"\\\\";v'],
    ['x'.repeat(255), `"${'x'.repeat(255)}"`],
  ])('%s is the same as %s', async (one, other) => {
    const { status, result } = await send(shared(), one, { 'a.png': 'one' })
    expect(status).toBe(200)
    expect((await send(shared(), other, { 'a.png': 'one' })).result).toEqual(result)
  })
})

it('dedupe answers with the link of the same bytes under another name', async () => {
  const providers = { local: { d: folder('files', { dedupe: true }) } }
  const app = await startApp({ config: { keyTemplate, providers } })
  const first = await post(`${app.url}/upload`, { body: formOf({ 'a.png': 'one' }) })
  const second = await post(`${app.url}/upload`, { body: formOf({ 'b.png': 'one' }) })
  expect(second.result).toEqual(first.result)
  expect(await app.files()).toHaveLength(1)
})
