import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makeDirectory } from './helpers/directory.ts'
import { download, formOf, post } from './helpers/form.ts'
import { spawnServer } from './helpers/spawn-server.ts'
import { type StubBucket, startStubBucket } from './helpers/stub-bucket.ts'

const FILES = { 'a.txt': 'one', 'b.txt': 'two' }

async function startWith(
  bucket: StubBucket,
  onConflict: string,
  directory: string,
  keyTemplate = '{filename}{extname}',
) {
  const config = {
    keyTemplate,
    limits: { retries: 0 },
    providers: { s3: { b: { ...bucket.options, onConflict } } },
  }
  await writeFile(join(directory, 'upload-server.json'), JSON.stringify(config))
  const server = await spawnServer(['--port', '0'], { directory })
  const url = await server.url
  return {
    send: (files: Record<string, string>, key: string = randomUUID()) =>
      post(`${url}/upload`, { body: formOf(files), headers: { 'Idempotency-Key': key } }),
    async kill() {
      server.process.kill('SIGKILL')
      await server.exit
    },
  }
}

/** Has two files stored, and the server killed before it hears of it. */
async function storeAndKill(
  bucket: StubBucket,
  onConflict: string,
  directory: string,
  key: string,
  keyTemplate?: string,
) {
  const server = await startWith(bucket, onConflict, directory, keyTemplate)
  const before = bucket.puts.length
  bucket.hold()
  const cut = server.send(FILES, key).catch(() => 'cut')
  await expect.poll(() => bucket.puts, { timeout: 10_000 }).toHaveLength(before + 2)
  await server.kill()
  expect(await cut).toBe('cut')
  bucket.letGo()
}

describe('a keyed repetition after kill -9', () => {
  it.each([1, 3])(
    'was refused over the files that its own cut attempt had stored (onConflict: error, %i kills)',
    { timeout: 60_000 },
    async kills => {
      const bucket = await startStubBucket()
      const directory = await makeDirectory()
      for (let n = 0; n < kills; n++) await storeAndKill(bucket, 'error', directory, 'k1')
      const server = await startWith(bucket, 'error', directory)
      const answer = await server.send(FILES, 'k1')
      expect(answer).toMatchObject({ status: 200 })
      expect(answer.items.map(({ fileName }) => fileName)).toEqual(['a.txt', 'b.txt'])
      expect(await server.send(FILES)).toMatchObject({ status: 502 })
    },
  )

  it('stored them a second time (onConflict: rename)', { timeout: 60_000 }, async () => {
    const bucket = await startStubBucket()
    const directory = await makeDirectory()
    const first = await startWith(bucket, 'rename', directory)
    await first.send({ 'a.txt': 'somebody else' })
    await first.kill()
    await storeAndKill(bucket, 'rename', directory, 'k1')
    const server = await startWith(bucket, 'rename', directory)
    const answer = await server.send(FILES, 'k1')
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
      for (let n = 0; n < 2; n++) await storeAndKill(bucket, onConflict, directory, 'k1', keyTemplate)
      const server = await startWith(bucket, onConflict, directory, keyTemplate)
      const answer = await server.send(FILES, 'k1')
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
    expect(await other.send({ 'a.txt': 'somebody else' })).toMatchObject({ status: 200 })
    await other.kill()
    const server = await startWith(bucket, 'error', directory)
    const answer = await server.send(FILES, 'k1')
    expect(answer).toMatchObject({ status: 502, errors: [{ index: 0 }] })
    expect(bucket.objects.get('a.txt')?.toString()).toBe('somebody else')
  })
})
