import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, realpath, stat, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { describe, expect, it, onTestFinished, type TestContext } from 'vitest'
import { inMemory } from '../../../src/body.ts'
import { failureOf } from '../../helpers/failure-of.ts'
import { mountSmall } from '../../helpers/mount-small.ts'
import { needs } from '../../helpers/needs.ts'
import { listFiles, makeRealDirectory, openFresh, openLocal, spoolPayload } from '../../helpers/open-local.ts'
import { objectOf } from '../../helpers/provider-contract.ts'

const MIB = 1024 * 1024
const never = () => new AbortController().signal

describe('payloads that local links', () => {
  it('copies a payload that lies on another file system', async context => {
    const { target, directory } = await openFresh({ durable: true, fileMode: '0640' })
    const elsewhere = await makeRealDirectory()
    await mountSmall(context, elsewhere, '16m')
    const path = join(elsewhere, 'payload')
    await writeFile(path, Buffer.alloc(2 * MIB, 7), { mode: 0o600 })
    await target.put(objectOf('a.bin', path), never())
    const found = await stat(join(directory, 'a.bin'))
    expect(found).toMatchObject({ size: 2 * MIB, nlink: 1 })
    expect(found.mode & 0o777).toBe(0o640)
    expect(await stat(path)).toMatchObject({ nlink: 1, size: 2 * MIB })
    expect((await stat(path)).mode & 0o777).toBe(0o600)
  })

  it('stores in a folder on which another file system is mounted', async context => {
    const { target, directory } = await openFresh({ durable: true })
    await mountSmall(context, join(directory, 'mounted'), '16m')
    const path = await spoolPayload(target, Buffer.alloc(2 * MIB, 7))
    await target.put(objectOf('mounted/a.bin', path), never())
    await target.put(objectOf('mounted/b.bin', Buffer.from('bytes')), never())
    expect(await readdir(join(directory, 'mounted'))).toEqual(['a.bin', 'b.bin'])
    expect(await stat(join(directory, 'mounted/a.bin'))).toMatchObject({ size: 2 * MIB })
    expect((await stat(join(directory, 'mounted/a.bin'))).mode & 0o777).toBe(0o644)
    expect(await listFiles(join(directory, '.upload-server'))).toEqual([await realpath(path)])
    const error = await failureOf(target.put(objectOf('mounted/c.bin', Buffer.alloc(20 * MIB)), never()))
    expect(error.code).toBe('insufficient_storage')
    expect(await readdir(join(directory, 'mounted'))).toEqual(['a.bin', 'b.bin'])
  })
})

describe('a folder that cannot be written', () => {
  it('is full: says so, keeps what was there and leaves nothing half', async context => {
    const directory = await makeRealDirectory()
    await mountSmall(context, directory, '2m')
    const target = await openLocal(directory)
    await target.put(objectOf('a.bin', Buffer.from('before')), never())
    for (const size of [4 * MIB, MIB]) {
      if (size === MIB) await target.put(objectOf('filler', Buffer.alloc(1.5 * MIB)), never())
      const error = await failureOf(target.put(objectOf('a.bin', Buffer.alloc(size)), never()))
      expect(error).toMatchObject({
        code: 'insufficient_storage',
        message: expect.stringContaining('its folder is full'),
      })
      expect(error.message).not.toContain(directory)
    }
    const quarter = Buffer.alloc(MIB / 4)
    const pieces = { ...objectOf('a.bin', Buffer.alloc(MIB)), ...inMemory(Array(4).fill(quarter)) }
    const error = await failureOf(target.put(pieces, never()))
    expect(error).toMatchObject({ code: 'insufficient_storage' })
    expect((await listFiles(directory)).map(path => basename(path))).toEqual(['a.bin', 'filler'])
    expect(await readFile(join(directory, 'a.bin'), 'utf8')).toBe('before')
    await target.put(objectOf('small.bin', Buffer.of(1)), never())
    await writeFile(join(directory, 'rest'), Buffer.alloc(MIB)).catch(() => {})
    await expect(target.check?.(never())).rejects.toMatchObject({ code: 'insufficient_storage' })
    await target.close?.()
  })

  it('is read-only: says so', async context => {
    const directory = await makeRealDirectory()
    await mountSmall(context, directory, '2m,ro')
    const target = await openLocal(directory)
    onTestFinished(() => target.close?.())
    for (const work of [
      async () => target.put(objectOf('a.bin', Buffer.of(1)), never()),
      async () => target.check?.(never()),
    ]) {
      expect(await failureOf(work())).toMatchObject({
        code: 'insufficient_storage',
        message: expect.stringContaining('its folder is read-only'),
      })
    }
  })
})

describe('what local has on the disk before it answers', () => {
  /** The calls of this process that sync, name and make files while `work` runs, such as `fsync a.png`. */
  async function traceCalls(context: TestContext, work: () => Promise<unknown>): Promise<string[]> {
    needs(context, 'strace', 'strace')
    const calls = '/^(fsync|fdatasync|(rename|link|mkdir)(at2?)?)$'
    const tracer = spawn('strace', ['-f', '-y', '-e', `trace=${calls}`, '-p', String(process.pid)])
    onTestFinished(() => void tracer.kill())
    let output = ''
    tracer.stderr.setEncoding('utf8').on('data', text => {
      output += text
    })
    const ended = once(tracer, 'close')
    while (!output.includes('attached')) {
      await Promise.race([once(tracer.stderr, 'data'), ended.then(() => expect.fail(output))])
    }
    await work()
    tracer.kill('SIGINT')
    await ended
    return [...output.matchAll(/\b(fsync|fdatasync|rename|link|mkdir)\w*\((.*)/g)].map(
      ([, call, args = '']) => {
        const path = args.match(/["<]\/[^">]*/g)?.at(-1) ?? ''
        return `${call} ${basename(path).replace(/^\d{16,}$/, 'temporary')}`
      },
    )
  }

  it('the bytes before the rename, the name and the new folders after it', async context => {
    const { target } = await openFresh({ durable: true })
    await target.put(objectOf('first', Buffer.of(1)), never())
    const calls = await traceCalls(context, () => target.put(objectOf('x/y/a.bin', Buffer.of(1)), never()))
    expect(calls).toEqual([
      'fsync temporary',
      'mkdir x',
      'fsync pictures',
      'mkdir y',
      'fsync x',
      'rename a.bin',
      'fsync y',
    ])
  })

  it('the bytes of a linked payload', async context => {
    const { target } = await openFresh({ durable: true })
    const path = await spoolPayload(target, Buffer.from('bytes'))
    await target.put(objectOf('first', Buffer.of(1)), never())
    const calls = await traceCalls(context, () => target.put(objectOf('a.bin', path), never()))
    expect(calls).toEqual(['link temporary', 'fsync temporary', 'rename a.bin', 'fsync pictures'])
  })

  it('nothing when it is not durable', async context => {
    const { target } = await openFresh({ durable: false })
    const calls = await traceCalls(context, async () => {
      await target.put(objectOf('x/a.bin', Buffer.of(1)), never())
      await target.put(objectOf('large.bin', Buffer.alloc(3 * MIB)), never())
    })
    expect(calls).toContain('rename a.bin')
    expect(calls).toContain('rename large.bin')
    expect(calls.filter(call => call.includes('sync'))).toEqual([])
  })
})
