import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { runCli } from './cli/run-cli.ts'
import { makeDirectory } from './helpers/directory.ts'
import { type Answer, download, formOf, post } from './helpers/form.ts'
import { openSqlite } from './helpers/sqlite.ts'
import { shareApp, startApp, type TestApp } from './helpers/start-app.ts'
import { startStubBucket } from './helpers/stub-bucket.ts'

const uniqueNames = { keyTemplate: '{uuid}{extname}' }

function send(app: TestApp, key: string, files: Record<string, string>, query = '') {
  return post(`${app.url}/upload${query}`, { body: formOf(files), headers: { 'Idempotency-Key': key } })
}

/** Links lead to the server that answers, so a later one has the same only at the same port. */
const portOf = (app: TestApp) => Number(new URL(app.url).port)

async function storedBy(app: TestApp): Promise<number> {
  return (await app.files()).length
}

it('takes both spellings of a destination for one request', async () => {
  const app = await startApp({ config: uniqueNames })
  const queries = ['?picbed=local&configName=Default', '?destination=local/Default', '?destination=local', '']
  for (const query of queries) {
    const answer = await send(app, 'k1', { 'a.png': 'one' }, query)
    expect([query, answer.status, answer.success]).toEqual([query, 200, true])
  }
  expect(await storedBy(app)).toBe(1)
})

it('answers a repetition with the first answer, also after a restart', async () => {
  const app = await startApp({ config: uniqueNames })
  const first = await send(app, 'k1', { 'a.png': 'one' })
  expect((await send(app, '"k1"', { 'a.png': 'one' })).items).toEqual(first.items)
  await app.server.stop()
  const server = { port: portOf(app) }
  const next = await startApp({ config: { ...uniqueNames, server }, directory: app.directory })
  expect((await send(next, 'k1', { 'a.png': 'one' })).items).toEqual(first.items)
  expect(await storedBy(next)).toBe(1)
})

describe('a repetition got the link of a file that was gone', () => {
  const cli = (app: TestApp, ...args: string[]) =>
    runCli(args, { cwd: app.directory, env: { XDG_DATA_HOME: join(app.directory, 'data') } })

  it('once it was removed', async () => {
    const app = await startApp({ config: uniqueNames })
    const files = { 'a.png': 'one', 'b.png': 'two' }
    const first = await send(app, 'k1', files)
    expect((await cli(app, 'remove', first.result[1]!, '--yes')).code).toBe(0)
    const again = await Promise.all([1, 2, 3].map(() => send(app, 'k1', files)))
    expect(await Promise.all(again[2]!.result.map(async link => String(await download(link))))).toEqual([
      'one',
      'two',
    ])
    expect(new Set(again.map(({ result }) => result[1])).size).toBe(1)
    expect((await send(app, 'k1', files)).items).toEqual(again[0]!.items)
    expect(await send(app, 'k1', { 'a.png': 'other' })).toMatchObject({ code: 'idempotency_key_reused' })
  })

  it.each([
    ['not removed yet', 600_000],
    ['removed', 50],
  ])('once it had expired and was %s', async (_, everyMs) => {
    const local = { d: { directory: 'd', serve: true, expiry: { default: 'never' } } }
    const config = {
      keyTemplate: '{filename}{extname}',
      cleanup: { interval: `${everyMs}ms` },
      providers: { local },
    }
    const app = await startApp({ config })
    const ask = () => send(app, 'k1', { 'a.png': 'one' }, '?expires=1h')
    const first = await ask()
    expect((await ask()).items).toEqual(first.items)
    const database = openSqlite(join(app.directory, 'data', 'upload-server', 'store.db'))
    database.exec('update objects set expires_at = 1')
    database.close()
    const stored = join(app.directory, 'd', 'a.png')
    if (everyMs < 1000) await expect.poll(() => existsSync(stored)).toBe(false)
    const again = await ask()
    expect(again.items).not.toEqual(first.items)
    expect(String(await download(again.result[0]!))).toBe('one')
  })

  const mirrorOf = (answer: Answer) =>
    (answer.items as unknown as [{ mirrors: [{ imgUrl: string }] }])[0].mirrors[0].imgUrl

  it('of its mirror alone', async () => {
    const local = {
      d: { directory: 'd', serve: true, mirrors: ['local/m'] },
      m: { directory: 'm', serve: true },
    }
    const app = await startApp({ config: { ...uniqueNames, default: 'local/d', providers: { local } } })
    const first = await send(app, 'k1', { 'a.png': 'one' })
    expect((await cli(app, 'remove', '--destination', 'local/m', mirrorOf(first), '--yes')).code).toBe(0)
    expect(String(await download(mirrorOf(await send(app, 'k1', { 'a.png': 'one' }))))).toBe('one')
  })

  it('with "dedupe"', async () => {
    const local = { d: { directory: 'd', serve: true, dedupe: true } }
    const app = await startApp({ config: { ...uniqueNames, providers: { local } } })
    const first = await post(`${app.url}/upload`, { body: formOf({ 'a.png': 'one' }) })
    expect((await cli(app, 'remove', first.result[0]!, '--yes')).code).toBe(0)
    const again = await post(`${app.url}/upload`, { body: formOf({ 'b.png': 'one' }) })
    expect(String(await download(again.result[0]!))).toBe('one')
  })

  it('while the upload that had stored it was still under way', async () => {
    const bucket = await startStubBucket()
    const s3 = { d: { ...bucket.options, onConflict: 'replace' } }
    const app = await startApp({ config: { keyTemplate: '{filename}{extname}', providers: { s3 } } })
    const sent = (files: Record<string, string>) => post(`${app.url}/upload`, { body: formOf(files) })
    bucket.hold()
    const underWay = sent({ 'a.png': 'one', 'b.png': 'two' })
    await expect.poll(() => bucket.puts).toHaveLength(2)
    await fetch(`${bucket.options['urlPrefix']}/a.png`, { method: 'DELETE' })
    const second = sent({ 'a.png': 'one' })
    bucket.letGo()
    expect([(await underWay).status, (await second).status]).toEqual([200, 200])
    expect(bucket.objects.get('a.png')?.toString()).toBe('one')
  })
})

describe('a key with another request', () => {
  it.each([
    ['other bytes', { 'a.png': 'two' }, ''],
    ['another name', { 'b.png': 'one' }, ''],
    ['one more file', { 'a.png': 'one', 'b.png': 'two' }, ''],
    ['another destination', { 'a.png': 'one' }, '?configName=second'],
  ])('%s: is refused', async (_what, files, query) => {
    const directory = { serve: true }
    const app = await startApp({
      config: {
        ...uniqueNames,
        default: 'local/first',
        providers: {
          local: { first: { ...directory, directory: 'one' }, second: { ...directory, directory: 'two' } },
        },
      },
    })
    await send(app, 'k1', { 'a.png': 'one' })
    const before = await storedBy(app)
    expect(await send(app, 'k1', files as Record<string, string>, query)).toMatchObject({
      status: 422,
      code: 'idempotency_key_reused',
    })
    expect(await storedBy(app)).toBe(before)
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
    const put = (body: string) =>
      post(`${app.url}/upload/a.txt`, { method: 'PUT', body, headers: { 'Idempotency-Key': 'k1' } })
    expect(await put('one')).toMatchObject({ status: 200 })
    expect(await put('larger')).toMatchObject({ status: 413 })
    expect(await put('one')).toMatchObject({ status: 200 })
  })
})

describe('a key', () => {
  const shared = shareApp({ config: uniqueNames })
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
    const first = await send(shared(), one, { 'a.png': 'one' })
    expect(first.status).toBe(200)
    expect((await send(shared(), other, { 'a.png': 'one' })).result).toEqual(first.result)
  })
})

it('leaves no temporary file behind for repetitions of large files', async () => {
  const app = await startApp({ config: uniqueNames })
  const large = 'x'.repeat(3_000_000)
  await Promise.all([1, 2, 3].map(() => send(app, 'k1', { 'a.bin': large })))
  await expect.poll(() => storedBy(app)).toBe(1)
})

describe('dedupe', () => {
  const config = {
    keyTemplate: '{uuid}{extname}',
    providers: { local: { d: { directory: 'files', serve: true, dedupe: true } } },
  }

  it('answers with the link of the same bytes that are there', async () => {
    const app = await startApp({ config })
    const first = await post(`${app.url}/upload`, { body: formOf({ 'a.png': 'one' }) })
    const second = await post(`${app.url}/upload`, { body: formOf({ 'b.png': 'one' }) })
    expect(second.result).toEqual(first.result)
    expect(await storedBy(app)).toBe(1)
  })

  it('stores again what is no longer there', async () => {
    const app = await startApp({ config })
    const first = await post(`${app.url}/upload`, { body: formOf({ 'a.png': 'one' }) })
    await rm(join(app.directory, 'files', first.items[0]!.fileName))
    const second = await post(`${app.url}/upload`, { body: formOf({ 'a.png': 'one' }) })
    expect(second.result, 'the old link works again').toEqual(first.result)
    expect((await download(second.result[0]!)).toString()).toBe('one')
  })
})
