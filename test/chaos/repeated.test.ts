import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { formOf, post } from '../helpers/form.ts'
import { spawnServer } from '../helpers/spawn-server.ts'
import { startStubBucket } from '../helpers/stub-bucket.ts'

/** Of one request, before it gets through. */
const KILLS = 2
const FILES = { 'a.txt': 'one', 'b.txt': 'two' }

it.each([
  ['error', '{filename}{extname}'],
  ['rename', '{filename}{extname}'],
  ['replace', '{filename}-{uuid}{extname}'],
  ['rename', '{filename}-{ms}-{str-4}{extname}'],
])(
  'a keyed repetition after kill -9 stored its files a second time, or was refused over them (onConflict: %s, %s)',
  { timeout: 60_000 },
  async (onConflict, keyTemplate) => {
    const bucket = await startStubBucket()
    const directory = await makeDirectory()
    const config = {
      ...{ server: { port: 0 }, keyTemplate, limits: { retries: 0 } },
      providers: { s3: { b: { ...bucket.options, onConflict } } },
    }
    await writeFile(join(directory, 'upload-server.json'), JSON.stringify(config))
    const send = (url: string, key: string) =>
      post(`${url}/upload`, { body: formOf(FILES), headers: { 'Idempotency-Key': key } })
    for (let n = 0; n < KILLS; n++) {
      const server = await spawnServer([], { directory })
      const url = await server.url
      const before = bucket.puts.length
      bucket.hold()
      const cut = send(url, 'k1').catch(() => 'cut')
      await expect.poll(() => bucket.puts, { timeout: 10_000 }).toHaveLength(before + 2)
      server.process.kill('SIGKILL')
      await server.exit
      expect(await cut).toBe('cut')
      bucket.letGo()
    }
    const url = await (await spawnServer([], { directory })).url
    const answer = await send(url, 'k1')
    expect(answer).toMatchObject({ status: 200 })
    const names = answer.items.map(({ fileName }) => fileName)
    expect([...bucket.objects.keys()].sort()).toEqual(names.sort())
    expect(await send(url, 'k1')).toMatchObject({ status: 200, result: answer.result })
    if (onConflict === 'error') expect(await send(url, randomUUID())).toMatchObject({ status: 502 })
  },
)
