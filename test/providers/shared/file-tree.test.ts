import { EventEmitter, once } from 'node:events'
import { posix } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Problem } from '../../../src/problem.ts'
import { toCheckedTarget } from '../../../src/providers/shared/checked-target.ts'
import { createFileTree, type RemoteFiles } from '../../../src/providers/shared/file-tree.ts'
import { objectOf } from '../../helpers/provider-contract.ts'

const never = () => new AbortController().signal
const TEMPORARY = /^\/www\/(?:.*\/)?\.upload-server-[0-9a-f]{16}$/

/** A server with folders, in memory. Calls are noted; one that `faults` names fails, and its effect does not happen. */
function startMemory(atomic = true, hasSizes = true) {
  const files = new Map<string, string>()
  const folders = new Set(['/'])
  const calls: string[] = []
  const faults = new Map<string, unknown>()
  const note = (call: string, path: string) => {
    calls.push(`${call} ${path}`)
    if (faults.has(call)) throw faults.get(call)
  }
  const refuse = (why: string) => {
    throw new Problem(why)
  }
  const remote: RemoteFiles = {
    async write(path, object, signal) {
      note('write', path)
      if (!folders.has(posix.dirname(path))) refuse('there is no such folder')
      files.set(path, '')
      for await (const chunk of object.read(signal)) files.set(path, `${files.get(path)}${chunk}`)
    },
    ...(hasSizes && { sizeOf: async (path: string) => files.get(path)?.length }),
    exists: async path => files.has(path),
    isFolder: async path => folders.has(path),
    async makeFolder(path) {
      note('makeFolder', path)
      if (folders.has(path)) refuse('it exists')
      folders.add(path)
    },
    async rename(from, to) {
      note('rename', to)
      files.set(to, files.get(from) ?? '')
      files.delete(from)
    },
    async remove(path) {
      note('remove', path)
      files.delete(path)
    },
    isRefusal: error => error instanceof Problem,
  }
  const urlOf = (key: string) => `https://img.example.com/${key}`
  const target = createFileTree(work => work(remote), { directory: '/www', atomic, urlOf })
  onTestFinished(() => target.close?.())
  const put = (key: string, text: string, signal = never()) =>
    target.put(objectOf(key, Buffer.from(text)), signal)
  return { files, folders, calls, faults, target, put }
}

/** An object that is read up to its middle, and then waits for `go`. */
function pausedObject(key: string, text: string) {
  const events = new EventEmitter<{ sent: []; go: [] }>()
  const sent = once(events, 'sent')
  async function* read() {
    yield Buffer.from(text.slice(0, 1))
    const going = once(events, 'go')
    events.emit('sent')
    await going
    yield Buffer.from(text.slice(1))
  }
  return { object: { ...objectOf(key, Buffer.from(text)), read }, sent, go: () => events.emit('go') }
}

describe('a tree of files', () => {
  it('stores under a temporary name in the same folder, and renames at the end', async () => {
    const { files, target, put } = startMemory()
    await put('a/b.bin', 'before')
    const { object, sent, go } = pausedObject('a/b.bin', 'after')
    const putting = target.put(object, never())
    await sent
    expect([...files]).toEqual([
      ['/www/a/b.bin', 'before'],
      [expect.stringMatching(TEMPORARY), 'a'],
    ])
    go()
    expect(await putting).toEqual({ url: 'https://img.example.com/a/b.bin' })
    expect([...files]).toEqual([['/www/a/b.bin', 'after']])
  })

  it('stores under the final name without "atomic"', async () => {
    const { calls, files, put } = startMemory(false)
    await put('b.bin', 'bytes')
    expect(calls).toEqual(['makeFolder /www', 'write /www/b.bin'])
    expect([...files]).toEqual([['/www/b.bin', 'bytes']])
  })

  it.each([true, false])('checks itself and leaves nothing behind (atomic: %s)', async atomic => {
    const { calls, files, target } = startMemory(atomic)
    await target.check?.(never())
    expect(calls.at(-1)).toMatch(atomic ? /^remove \/www\/\.upload-/ : /^remove \/www\/upload-/)
    expect([...files]).toEqual([])
  })

  it('makes a folder once for many puts at once, and again when somebody has removed it', async () => {
    const { calls, files, folders, put } = startMemory()
    await Promise.all([1, 2, 3, 4].map(i => put(`x/y/${i}`, `${i}`)))
    expect([...files.keys()].sort()).toEqual([1, 2, 3, 4].map(i => `/www/x/y/${i}`))
    for (const folder of [...folders]) if (folder !== '/') folders.delete(folder)
    calls.length = 0
    await put('x/y/5', '5')
    expect(calls.filter(call => call.startsWith('make'))).toEqual(
      ['', '/x', '/x/y'].map(path => `makeFolder /www${path}`),
    )
    expect(files.get('/www/x/y/5')).toBe('5')
  })

  it('does not take for stored what has another size', async () => {
    const { files, target } = startMemory()
    const object = { ...objectOf('a.bin', Buffer.from('bytes')), size: 6 }
    await expect(target.put(object, never())).rejects.toMatchObject({
      retryable: true,
      why: expect.stringMatching(/^the server accepted the file, but stored .* of 6 bytes$/),
    })
    await expect.poll(() => [...files]).toEqual([])
  })

  it('believes a server whose responses prove what was stored', async () => {
    const { files, target } = startMemory(true, false)
    await target.put({ ...objectOf('a.bin', Buffer.from('bytes')), size: 6 }, never()).catch(() => {})
    expect(files.size).toBe(1)
  })

  it('removes the temporary file of a put that is aborted, and leaves the others alone', async () => {
    const { files, target, put } = startMemory()
    const abort = new AbortController()
    const { object, sent, go } = pausedObject('a.bin', 'bytes')
    const putting = target.put(object, abort.signal)
    await sent
    const reason = new Error('the client has left')
    abort.abort(reason)
    await expect(putting).rejects.toBe(reason)
    await put('b.bin', 'other')
    go()
    await expect.poll(() => [...files.keys()]).toEqual(['/www/b.bin'])
  })

  it('removes a temporary file later that it could not remove at once', async () => {
    const { files, faults, put } = startMemory()
    for (const call of ['rename', 'remove']) faults.set(call, new Error('the connection broke'))
    await expect(put('a.txt', 'bytes')).rejects.toThrow('broke')
    expect([...files.keys()]).toEqual([expect.stringMatching(TEMPORARY)])
    faults.clear()
    await put('b.txt', 'bytes')
    await expect.poll(() => [...files.keys()]).toEqual(['/www/b.txt'])
  })

  it.each(['.htaccess', 'a/.ftpaccess', 'a\\b'])('sends nothing for the key %j', async key => {
    const { calls, target } = startMemory()
    const { put, exists, remove } = toCheckedTarget(target, 'ftp/Default', () => {})
    for (const work of [
      put(objectOf(key, Buffer.of(1)), never()),
      exists?.(key, never()),
      remove?.(key, never()),
    ])
      await expect(work).rejects.toThrow('its object key is invalid')
    expect(calls).toEqual([])
  })
})
