import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { lendBody } from '../../../src/providers/shared/body.ts'
import { needsLinux } from '../../helpers/needs.ts'
import { openFilesBelow } from '../../helpers/open-files.ts'
import { objectOf } from '../../helpers/provider-contract.ts'

const KIB = 1024
const never = () => new AbortController().signal

async function fileOf(bytes: Buffer): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'body-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const path = join(directory, 'file')
  await writeFile(path, bytes)
  return path
}

/** What a receiver gets that takes a while for each chunk. */
async function receive(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  const copies: Buffer[] = []
  for await (const chunk of chunks) {
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
        const object = objectOf('a.bin', await fileOf(bytes))
        expect((await receive(lendBody(object, never()))).equals(bytes)).toBe(true)
      }),
    )
  }
})

it('closes the file, however it ends', async context => {
  needsLinux(context, '/proc')
  const path = await fileOf(randomBytes(1500 * KIB))
  const object = objectOf('a.bin', path)
  for await (const _ of lendBody(object, never())) break
  const abort = new AbortController()
  const aborted = lendBody(object, abort.signal)
  await aborted.next()
  expect(openFilesBelow(dirname(path))).toEqual([path])
  abort.abort(new Error('enough'))
  await expect(aborted.next()).rejects.toThrow('enough')
  await receive(lendBody(object, never()))
  expect(openFilesBelow(dirname(path))).toEqual([])
})

it('tells when a file is shorter or longer than it was, or gone', async () => {
  const path = await fileOf(randomBytes(600 * KIB))
  const object = objectOf('a.bin', path)
  const failure = () =>
    receive(lendBody(object, never())).then(
      () => expect.fail('this should have failed'),
      (error: Error) => error,
    )
  for (const size of [500 * KIB, 1200 * KIB]) {
    await truncate(path, size)
    expect(await failure()).toMatchObject({
      message: expect.stringContaining('does not have the size'),
      retryable: true,
    })
  }
  await rm(path)
  expect((await failure()).message).toBe('"a.bin" could not be read on this server (ENOENT)')
})

it.each([4, 6])(
  'a stream that is not %i bytes long, as announced, fails, and no rest goes out',
  async size => {
    const sent: Buffer[] = []
    const send = async () => {
      for await (const chunk of lendBody({ ...objectOf('a.bin', Buffer.from('bytes')), size }, never()))
        sent.push(chunk)
    }
    await expect(send()).rejects.toThrow('"a.bin" does not have the size')
    // The rest would be taken for another request.
    expect(Buffer.concat(sent).length).toBe(size < 5 ? 0 : 5)
  },
)

it('closes the stream that it reads from when it is given up, and opens none before it is read', async () => {
  const opened: Readable[] = []
  const stalled = {
    ...objectOf('a.bin', Buffer.from('bytes')),
    stream: () => {
      const stream = new Readable({ read() {} })
      opened.push(stream)
      return stream
    },
  }
  const stop = new AbortController()
  const chunks = lendBody(stalled, stop.signal)
  expect(opened).toHaveLength(0)
  const reading = chunks.next()
  await nextTurn()
  stop.abort(new Error('given up'))
  await expect(reading).rejects.toThrow('given up')
  expect(opened.map(one => one.destroyed)).toEqual([true])
})
