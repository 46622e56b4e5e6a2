import { randomBytes } from 'node:crypto'
import { rm, truncate, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { type Body, divide, inFile, inMemory, readAll, readCopies } from '../src/body.ts'
import { makeDirectory } from './helpers/directory.ts'
import { needsLinux } from './helpers/needs.ts'
import { openFilesBelow } from './helpers/open-files.ts'

const KIB = 1024
const never = () => new AbortController().signal

async function fileOf(bytes: Buffer): Promise<string> {
  const path = join(await makeDirectory(), 'file')
  await writeFile(path, bytes)
  return path
}

/** What a receiver gets that takes a while for each chunk. */
async function receive(body: Body): Promise<Buffer> {
  const copies: Buffer[] = []
  for await (const chunk of body.read(never())) {
    await new Promise(setImmediate)
    copies.push(Buffer.from(chunk))
  }
  return Buffer.concat(copies)
}

it('lends the bytes of files that are read at the same time, of any size', async () => {
  const sizes = [0, 1, 256 * KIB - 1, 256 * KIB, 256 * KIB + 1, 512 * KIB, 1500 * KIB]
  for (const _ of [1, 2]) {
    await Promise.all(
      sizes.map(async size => {
        const bytes = randomBytes(size)
        expect((await receive(inFile(await fileOf(bytes), size))).equals(bytes)).toBe(true)
      }),
    )
  }
})

it('is read in parts, from memory and from a file', async () => {
  const bytes = randomBytes(1000 * KIB + 1)
  const chunks = [bytes.subarray(0, 1), bytes.subarray(1, 300 * KIB), bytes.subarray(300 * KIB)]
  for (const content of [inMemory(chunks), inMemory(bytes), inFile(await fileOf(bytes), bytes.length)]) {
    const parts = divide(content, 256 * KIB)
    expect(parts.map(({ size }) => size)).toEqual([...Array(3).fill(256 * KIB), 232 * KIB + 1])
    for (const read of [receive, (part: Body) => readAll(part, never())]) {
      const whole = Buffer.concat(await Promise.all(parts.map(read)))
      expect(whole.equals(bytes)).toBe(true)
    }
  }
})

it('closes the file, however it ends', async context => {
  needsLinux(context, '/proc')
  const path = await fileOf(randomBytes(1500 * KIB))
  const content = inFile(path, 1500 * KIB)
  for await (const _ of content.read(never())) break
  const abort = new AbortController()
  const aborted = content.read(abort.signal)
  await aborted.next()
  expect(openFilesBelow(dirname(path))).toEqual([path])
  abort.abort(new Error('enough'))
  await expect(aborted.next()).rejects.toThrow('enough')
  await receive(content)
  expect(openFilesBelow(dirname(path))).toEqual([])
})

it('tells when a file is shorter than it was, or gone', async () => {
  const path = await fileOf(randomBytes(600 * KIB))
  const content = inFile(path, 600 * KIB)
  await truncate(path, 500 * KIB)
  const failure = { message: expect.stringContaining('does not have the size'), retryable: true }
  await expect(receive(content)).rejects.toMatchObject(failure)
  await rm(path)
  await expect(receive(content)).rejects.toThrow(
    'its temporary file could not be read on this server (ENOENT)',
  )
})

it.each([4, 6])('a body that is not %i bytes long, as announced, fails, and no rest goes out', async size => {
  const sent: Buffer[] = []
  const send = async () => {
    for await (const chunk of readCopies({ ...inMemory(Buffer.from('bytes')), size }, never()))
      sent.push(chunk)
  }
  await expect(send()).rejects.toThrow('it does not have the size')
  // The rest would be taken for another request.
  expect(Buffer.concat(sent).length).toBe(size < 5 ? 0 : 5)
})

it('ends with its signal, and opens no file before it is read', async () => {
  const stop = AbortSignal.abort(new Error('given up'))
  for (const content of [inMemory(Buffer.of(1)), inFile('/nowhere', 1)])
    await expect(content.read(stop).next()).rejects.toThrow('given up')
  inFile('/nowhere', 1).read(never())
})
