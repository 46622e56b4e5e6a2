import { createHash, randomBytes } from 'node:crypto'
import { open, readdir, readFile, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readAll } from '../../src/body.ts'
import { createPayloads, tooLarge } from '../../src/payload/index.ts'
import { createSpool, type Spool } from '../../src/payload/spool.ts'
import { makeDirectory } from '../helpers/directory.ts'

const MIB = 1024 * 1024
const { signal } = new AbortController()
/** The most that stays in memory of one payload for a destination that links its files. */
const KEPT = 512 * 1024

async function* inChunks(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

/** The spool of a destination that links its files. */
async function makeSpool(): Promise<Spool> {
  return { ...(await makeTemporary()), isLinked: true }
}

/** The spool for all other destinations. */
async function makeTemporary(): Promise<Spool> {
  return createSpool(join(await makeDirectory(), 'spool'))
}

/** Names of the temporary files there are. */
const leftIn = (spool: Spool) => readdir(spool.directory).catch(() => [])

describe('a payload', () => {
  it.each([
    ['nothing', 0, 1, false],
    ['a byte', 1, 1, false],
    ['bytes in odd chunks', 10_007, 313, false],
    ['just as much as stays in memory', KEPT, 64 * 1024, false],
    ['a byte more than that', KEPT + 1, 64 * 1024, true],
    ['some megabytes in small chunks', 3 * MIB + 7, 1000, true],
    ['some megabytes in one chunk', 3 * MIB, 3 * MIB, true],
  ])('holds %s, and can be read again and again', async (_, size, chunk, inFile) => {
    const bytes = randomBytes(size)
    const spool = await makeSpool()
    const payload = await createPayloads().read(inChunks(bytes, chunk), {
      name: 'a/b.png',
      folders: ['x', 'y'],
      spool,
      limit: size,
    })
    expect(payload).toMatchObject({
      name: 'a/b.png',
      folders: ['x', 'y'],
      size,
      sha256: createHash('sha256').update(bytes).digest('hex'),
    })
    expect(payload.path !== undefined).toBe(inFile)
    if (payload.path !== undefined) expect((await readFile(payload.path)).equals(bytes)).toBe(true)
    for (const body of await Promise.all([1, 2, 3].map(() => readAll(payload, signal))))
      expect(body.equals(bytes)).toBe(true)
    await payload.dispose()
    await payload.dispose()
    expect(await leftIn(spool)).toEqual([])
    await spool.close()
  })

  it('has the type of its bytes, however they are cut into chunks', async () => {
    const png = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'latin1'), Buffer.alloc(100)])
    for (const size of [1, 3, 200]) {
      const payload = await createPayloads().read(inChunks(png, size), {
        name: 'x.txt',
        spool: await makeSpool(),
        limit: 1e6,
      })
      expect(payload).toMatchObject({ contentType: 'image/png', extension: '.png' })
    }
    const svg = Buffer.from(`<!-- ${'x'.repeat(9000)} --><svg/>`)
    const payload = await createPayloads().read(inChunks(svg, 1), {
      name: '',
      spool: await makeSpool(),
      limit: 1e6,
    })
    expect(payload).toMatchObject({ contentType: 'image/svg+xml', extension: '.svg' })
  })
})

describe('the limit of a payload', () => {
  it.each([10, 2 * MIB])('is exact at %d bytes, and leaves nothing behind', async limit => {
    const spool = await makeSpool()
    const read = (size: number) =>
      createPayloads().read(inChunks(randomBytes(size), 64 * 1024), { name: 'a.png', spool, limit })
    await (await read(limit)).dispose()
    await expect(read(limit + 1)).rejects.toMatchObject({ code: 'too_large' })
    expect(await leftIn(spool)).toEqual([])
  })

  it.each([
    ['a.png', 100 * MIB, '"a.png" is larger than 100 MB (limits.fileSize, or fileSize of the client).'],
    ['a.png', 1.5 * MIB, '"a.png" is larger than 1.5 MB (limits.fileSize, or fileSize of the client).'],
    ['a.png', 300_000, '"a.png" is larger than 293 KB (limits.fileSize, or fileSize of the client).'],
    ['', 512, 'The file is larger than 512 bytes (limits.fileSize, or fileSize of the client).'],
  ])('is named when %j is larger', (name, limit, message) => {
    expect(tooLarge(name, limit)).toMatchObject({ code: 'too_large', message })
  })
})

describe('the memory of all payloads together', () => {
  it('is limited: what does not fit goes to disk, and what is given back can be used again, once', async () => {
    const payloads = createPayloads()
    const spool = await makeSpool()
    const bytes = Buffer.alloc(KEPT, 1)
    const read = () => payloads.read(inChunks(bytes, KEPT), { name: '', spool, limit: KEPT })
    const held = await Promise.all(Array.from({ length: 128 }, read))
    expect(held.filter(payload => payload.path !== undefined)).toEqual([])
    const onDisk = await read()
    expect(onDisk.path).toBeDefined()
    expect((await readAll(onDisk, signal)).equals(bytes)).toBe(true)
    await held[0]?.dispose()
    await held[0]?.dispose()
    expect((await read()).path).toBeUndefined()
    expect((await read()).path).toBeDefined()
    await spool.close()
  })

  it('follows the container, also after a reload: 50 clients of 5 MB ended one of 128 MB', async () => {
    const payloads = createPayloads(64 * MIB, 88 * MIB)
    payloads.resize(128 * MIB)
    const spool = await makeTemporary()
    const read = () => payloads.read(inChunks(randomBytes(KEPT), KEPT), { name: '', spool, limit: KEPT })
    const inMemory = [await read(), await read(), await read()].map(({ path }) => path === undefined)
    expect(inMemory).toEqual([true, true, false])
    await spool.close()
  })

  it('is shared by lists: a large one is refused while another has it, a small one is not', () => {
    const payloads = createPayloads(2 * MIB)
    const release = payloads.take(3 * MIB)
    expect(() => payloads.take(MIB)).toThrow(expect.objectContaining({ code: 'overloaded', retryAfterS: 5 }))
    payloads.take(64 * 1024)()
    release()
    payloads.take(MIB)
    payloads.take(MIB)
    expect(() => payloads.take(MIB)).toThrow('limits.memory')
  })

  it('has room for larger payloads while a third of it is used at most, if nothing is linked', async () => {
    const payloads = createPayloads(30 * MIB)
    const spool = await makeTemporary()
    const read = (size: number) =>
      payloads.read(inChunks(randomBytes(size), 64 * 1024), { name: '', spool, limit: size })
    const sizes = [8 * MIB + 1, 8 * MIB, 2 * MIB, MIB, KEPT]
    const inFile: boolean[] = []
    for (const size of sizes) inFile.push((await read(size)).path !== undefined)
    expect(inFile).toEqual([true, false, false, true, false])
    await spool.close()
  })

  it('is given back by what fails, is aborted or goes to disk', async () => {
    const payloads = createPayloads()
    const spool = await makeSpool()
    const options = { name: '', spool, limit: 2 * KEPT }
    const chunk = Buffer.alloc(KEPT)
    for (let i = 0; i < 140; i++) {
      const bytes = Buffer.alloc([KEPT + 1, 2 * KEPT, 3 * KEPT][i % 3] ?? 0)
      const result = await payloads.readPart(inChunks(bytes, KEPT), options)
      if ('dispose' in result) await result.dispose()
      else expect(result.error.code).toBe('too_large')
    }
    expect((await payloads.read(inChunks(chunk, KEPT), options)).path).toBeUndefined()
    expect(await leftIn(spool)).toEqual([])
  })
})

describe('a payload without free memory', () => {
  it('reads on when what it has is on disk, and takes the memory that was given back', async () => {
    const order: string[] = []
    const spool = await makeSpool()
    const create: Spool['create'] = async () => {
      await new Promise(setImmediate)
      order.push('disk')
      return spool.create()
    }
    async function* body() {
      yield Buffer.alloc(1000)
      yield Buffer.alloc(1)
      order.push('next')
      yield Buffer.alloc(1000)
    }
    const payloads = createPayloads(1000)
    const payload = await payloads.read(body(), { name: '', spool: { ...spool, create }, limit: MIB })
    expect(order).toEqual(['disk', 'next'])
    expect(await readAll(payload, signal)).toHaveLength(2001)
    await payload.dispose()
    const held = await payloads.read(inChunks(Buffer.alloc(1000), 1000), { name: '', spool, limit: MIB })
    expect(held.path).toBeUndefined()
    expect(await leftIn(spool)).toEqual([])
  })
})

describe('a payload that fails', () => {
  it('passes the error of its source on and leaves nothing behind', async () => {
    const spool = await makeSpool()
    const failure = new Error('the client left')
    async function* body() {
      yield randomBytes(2 * MIB)
      throw failure
    }
    await expect(createPayloads().read(body(), { name: '', spool, limit: 1e9 })).rejects.toBe(failure)
    expect(await leftIn(spool)).toEqual([])
  })

  /** A spool whose files lie on a full disk. */
  async function makeFullSpool(): Promise<Spool> {
    const spool = await makeSpool()
    return {
      ...spool,
      async create() {
        const path = join(dirname(await makeDirectory()), `full-${randomBytes(6).toString('hex')}`)
        await symlink('/dev/full', path)
        return { path, file: await open(path, 'r+') }
      },
    }
  }

  // The failure may show in a write, or only at the end.
  it.each([2, 3, 8])('says that the disk is full, after %d chunks', async chunks => {
    const options = { name: '', spool: await makeFullSpool(), limit: 1e9 }
    const bytes = randomBytes(chunks * KEPT)
    const full = { code: 'insufficient_storage', cause: { code: 'ENOSPC' } }
    await expect(createPayloads().read(inChunks(bytes, KEPT), options)).rejects.toMatchObject(full)
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    const part = createPayloads().readPart(inChunks(bytes, KEPT), options)
    await expect(part).resolves.toMatchObject({ error: full, sha256 })
  })
})
