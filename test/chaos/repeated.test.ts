import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { download, formOf, post } from '../helpers/form.ts'
import { spawnServer } from '../helpers/spawn-server.ts'
import { startApp } from '../helpers/start-app.ts'
import { type StubBucket, startStubBucket } from '../helpers/stub-bucket.ts'

/** Of one request, before it gets through. */
const KILLS = 2

const FILES = { 'a.txt': 'one', 'b.txt': 'two' }

const configOf = (bucket: StubBucket, onConflict: string, keyTemplate = '{filename}{extname}') => ({
  server: { port: 0 },
  keyTemplate,
  limits: { retries: 0 },
  providers: { s3: { b: { ...bucket.options, onConflict } } },
})

const send = (to: { url: string }, files: Record<string, string>, key: string = randomUUID()) =>
  post(`${to.url}/upload`, { body: formOf(files), headers: { 'Idempotency-Key': key } })

/** A server in this process, on the store of those that were killed. */
const startWith = (bucket: StubBucket, onConflict: string, directory: string, keyTemplate?: string) =>
  startApp({
    directory,
    config: configOf(bucket, onConflict, keyTemplate),
    env: { XDG_DATA_HOME: directory },
  })

/** Has two files stored, and the server killed before it hears of it. */
async function storeAndKill(
  bucket: StubBucket,
  onConflict: string,
  directory: string,
  key: string,
  keyTemplate?: string,
) {
  const config = configOf(bucket, onConflict, keyTemplate)
  await writeFile(join(directory, 'upload-server.json'), JSON.stringify(config))
  const server = await spawnServer([], { directory })
  const to = { url: await server.url }
  const before = bucket.puts.length
  bucket.hold()
  const cut = send(to, FILES, key).catch(() => 'cut')
  await expect.poll(() => bucket.puts, { timeout: 10_000 }).toHaveLength(before + 2)
  server.process.kill('SIGKILL')
  await server.exit
  expect(await cut).toBe('cut')
  bucket.letGo()
}

describe('a keyed repetition after kill -9', () => {
  it.each([3])(
    'was refused over the files that its own cut attempt had stored (onConflict: error, %i kills)',
    { timeout: 60_000 },
    async kills => {
      const bucket = await startStubBucket()
      const directory = await makeDirectory()
      for (let n = 0; n < kills; n++) await storeAndKill(bucket, 'error', directory, 'k1')
      const server = await startWith(bucket, 'error', directory)
      const answer = await send(server, FILES, 'k1')
      expect(answer).toMatchObject({ status: 200 })
      expect(answer.items.map(({ fileName }) => fileName)).toEqual(['a.txt', 'b.txt'])
      expect(await send(server, FILES)).toMatchObject({ status: 502 })
    },
  )

  it('stored them a second time (onConflict: rename)', { timeout: 60_000 }, async () => {
    const bucket = await startStubBucket()
    const directory = await makeDirectory()
    const first = await startWith(bucket, 'rename', directory)
    await send(first, { 'a.txt': 'somebody else' })
    await first.server.stop()
    await storeAndKill(bucket, 'rename', directory, 'k1')
    const server = await startWith(bucket, 'rename', directory)
    const answer = await send(server, FILES, 'k1')
    expect(answer.items.map(({ fileName }) => fileName)).toEqual(['a-2.txt', 'b.txt'])
    expect([...bucket.objects.keys()].sort()).toEqual(['a-2.txt', 'a.txt', 'b.txt'])
    expect((await download(answer.result[0]!)).toString()).toBe('one')
    expect(bucket.objects.get('a.txt')?.toString()).toBe('somebody else')
  })

  it.each([
    ['replace', '{filename}-{uuid}{extname}'],
    ['rename', '{filename}-{ms}-{str-4}{extname}'],
  ])(
    'stored them a second time under new keys (onConflict: %s, %s)',
    {
      timeout: 60_000,
    },
    async (onConflict, keyTemplate) => {
      const bucket = await startStubBucket()
      const directory = await makeDirectory()
      for (let n = 0; n < KILLS; n++) await storeAndKill(bucket, onConflict, directory, 'k1', keyTemplate)
      const server = await startWith(bucket, onConflict, directory, keyTemplate)
      const answer = await send(server, FILES, 'k1')
      expect(answer).toMatchObject({ status: 200 })
      const names = answer.items.map(({ fileName }) => fileName)
      expect([...bucket.objects.keys()].sort()).toEqual(names.sort())
    },
  )

  it('does not replace what somebody else has stored there since then', { timeout: 60_000 }, async () => {
    const bucket = await startStubBucket()
    const directory = await makeDirectory()
    await storeAndKill(bucket, 'error', directory, 'k1')
    const other = await startWith(bucket, 'replace', directory)
    expect(await send(other, { 'a.txt': 'somebody else' })).toMatchObject({ status: 200 })
    await other.server.stop()
    const server = await startWith(bucket, 'error', directory)
    const answer = await send(server, FILES, 'k1')
    expect(answer).toMatchObject({ status: 502, errors: [{ index: 0 }] })
    expect(bucket.objects.get('a.txt')?.toString()).toBe('somebody else')
  })
})

describe('a keyed repetition after a failure', () => {
  it.each([
    ['error', '{filename}{extname}'],
    ['rename', '{filename}{extname}'],
    ['replace', '{filename}-{uuid}{extname}'],
  ])(
    'stored a second time what had arrived in spite of it, or was refused over that (onConflict: %s, %s)',
    async (onConflict, keyTemplate) => {
      const bucket = await startStubBucket()
      const config = configOf(bucket, onConflict, keyTemplate)
      const limits = { ...config.limits, destinationTimeout: '1000ms' }
      const server = await startApp({ config: { ...config, limits } })
      bucket.hold()
      expect(await send(server, FILES, 'k1')).toMatchObject({ status: 504 })
      bucket.letGo()
      const answer = await send(server, FILES, 'k1')
      expect(answer).toMatchObject({ status: 200 })
      const names = answer.items.map(({ fileName }) => fileName)
      expect([...bucket.objects.keys()].sort()).toEqual(names.sort())
      expect(await send(server, FILES, 'k1')).toMatchObject({ status: 200, result: answer.result })
    },
  )

  it('stored what is there a second time since a required mirror had failed', async () => {
    const [bucket, mirror] = [await startStubBucket(), await startStubBucket()]
    const mirrors = [{ destination: 's3/m', required: true }]
    const s3 = { b: { ...bucket.options, onConflict: 'rename', mirrors }, m: mirror.options }
    const server = await startApp({
      config: {
        ...configOf(bucket, 'rename'),
        default: 's3/b',
        limits: { retries: 0, destinationTimeout: '1000ms' },
        providers: { s3 },
      },
    })
    mirror.hold()
    expect(await send(server, FILES, 'k1')).toMatchObject({ status: 504 })
    expect([...bucket.objects.keys()].sort()).toEqual(['a.txt', 'b.txt'])
    mirror.letGo()
    expect(await send(server, FILES, 'k1')).toMatchObject({ status: 200 })
    expect([...bucket.objects.keys()].sort()).toEqual(['a.txt', 'b.txt'])
  })

  it('is no repetition when it asks for something else, which is taken', async () => {
    const bucket = await startStubBucket()
    const config = configOf(bucket, 'error')
    const server = await startApp({
      config: { ...config, limits: { retries: 0, destinationTimeout: '1000ms' } },
    })
    bucket.hold()
    expect(await send(server, FILES, 'k1')).toMatchObject({ status: 504 })
    bucket.letGo()
    expect(await send(server, { 'c.txt': 'three' }, 'k1')).toMatchObject({ status: 200 })
    expect(await send(server, FILES, 'k1')).toMatchObject({ status: 422, code: 'idempotency_key_reused' })
  })
})
