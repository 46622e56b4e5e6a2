import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chmod,
  link,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  symlink,
  unlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { UploadError } from '../../src/errors.ts'
import type { OpenTarget } from '../../src/providers/contract.ts'
import { explained } from '../../src/providers/local/explain.ts'
import { local } from '../../src/providers/local/index.ts'
import { findPathFault } from '../../src/providers/local/key-path.ts'
import { failureOf } from '../helpers/failure-of.ts'
import { listFiles, makeRealDirectory, openFresh, openLocal, spoolPayload } from '../helpers/open-local.ts'
import { describeProvider, objectOf } from '../helpers/provider-contract.ts'
import { never, put } from '../helpers/target.ts'
import { startWebFolder } from '../servers/web-folder.ts'

const MIB = 1024 * 1024

/** The real path of what is handed out. */
async function locate(target: OpenTarget | undefined, key: string): Promise<string | undefined> {
  const file = await target?.locate?.(key)
  await file?.close()
  return file?.real
}

describeProvider('local, behind a web server, durable', async () => {
  const root = await mkdtemp(join(tmpdir(), 'local-contract-'))
  const web = await startWebFolder(join(root, 'web'))
  const options = { durable: true, serve: false, urlPrefix: web.url }
  return {
    target: await openLocal(join(root, 'web'), options),
    fetch: web.fetch,
    secrets: [],
    without: { credentials: 'a folder has none', connection: 'a folder is reached without one' },
    async close() {
      web.close()
      await rm(root, { recursive: true })
    },
  }
})

describe('options of local', () => {
  it.each([
    [{}, /"serve"/],
    [{ serve: true }, undefined],
    [{ urlPrefix: 'https://img.example.com/' }, undefined],
  ])('with %j has a way to hand files out, or says what to set', (options, fault) => {
    const found = local.validate?.(local.config.parse({ directory: '/srv', ...options }))
    if (fault === undefined) expect(found).toBeUndefined()
    else expect(found).toMatch(fault)
  })

  it.each([
    ['directory', ''],
    ['urlPrefix', 'ftp://img.example.com'],
    ['fileMode', '444'],
    ['fileMode', '4755'],
    ['fileMode', 'rw-r--r--'],
    ['directoryMode', '0655'],
    ['directoryMode', '9755'],
  ])('refuses %s %j', (option, value) => {
    const { error } = local.config.safeParse({ directory: '/srv', [option]: value })
    expect(error?.issues.map(issue => issue.path)).toEqual([[option]])
  })

  it.each([
    [{}, 'files/a%2Fb%20c/x%20y/it%27s%20%281%29.png'],
    [{ urlPrefix: 'https://img.example.com/x' }, 'https://img.example.com/x/x%20y/it%27s%20%281%29.png'],
    [{ serve: false, urlPrefix: 'https://img.example.com' }, undefined],
  ])('with %j serves a file as %s', async (options, served) => {
    const { directory } = await openFresh()
    const target = await openLocal(directory, options, 'a/b c')
    onTestFinished(() => target.close?.())
    const { url } = await put(target, "x y/it's (1).png")
    if (served !== undefined) expect(url).toBe(served)
    expect(target.locate === undefined).toBe(served === undefined)
  })
})

describe('keys that local refuses', () => {
  it.each([
    ...[
      '..',
      '../a.png',
      'a/../../b.png',
      'a/..',
      '.',
      './a.png',
      '/etc/passwd',
      '//a.png',
      'a//b.png',
      'a/',
      '',
    ],
    ...[
      'a\0.png',
      'a\\..\\b.png',
      '..\\a.png',
      '.htaccess',
      'a/.git/config',
      '.upload-server/x',
      'half\ud800.png',
    ],
    ...['a'.repeat(256), `${'ä'.repeat(128)}.png`, `${'long/'.repeat(205)}.png`],
  ])('%j', async key => {
    const { target, directory } = await openFresh()
    const error = await failureOf(put(target, key))
    expect(error.code).toBe('destination_failed')
    expect(error.message).not.toContain(directory)
    await expect(target.exists?.(key, never())).rejects.toThrow(UploadError)
    await expect(target.remove?.(key, never())).rejects.toThrow(UploadError)
    expect(await locate(target, key)).toBeUndefined()
    await expect(readdir(dirname(directory))).resolves.toEqual([])
  })

  it.each([
    ...[
      'C:/a.png',
      'a:stream.png',
      'CON',
      'con.png',
      'a/NUL .txt',
      'com1.tar.gz',
      'LPT².x',
      'conin$',
      'a. /b',
    ],
    ...['a.', 'a ', 'a?.png'],
  ])('%j on Windows, where it means something else', key => {
    expect(findPathFault(key, 'win32')).toBeDefined()
    expect(findPathFault(key, 'linux')).toBeUndefined()
  })

  it.each(['a..b.png', 'a...', 'contact.png', 'comet1', 'a/b/c', '~', '-rf', 'a'.repeat(255)])(
    'but not %j',
    key => {
      expect(findPathFault(key, 'linux')).toBeUndefined()
    },
  )
})

describe('links in the folder of local', () => {
  async function openWithOutside() {
    const { target, directory } = await openFresh()
    const outside = await makeRealDirectory()
    await writeFile(join(outside, 'secret.txt'), 'not yours')
    await mkdir(directory)
    return { target, directory, outside }
  }

  it('does not write through a linked folder that leads out', async () => {
    const { target, directory, outside } = await openWithOutside()
    await symlink(outside, join(directory, 'out'))
    for (const key of ['out/a.png', 'out/new/folder/a.png', 'out/secret.txt']) {
      const error = await failureOf(put(target, key))
      expect(error.message).toContain('symbolic link points out')
      expect(error.message).not.toContain(outside)
    }
    expect(await readdir(outside)).toEqual(['secret.txt'])
    expect(await readFile(join(outside, 'secret.txt'), 'utf8')).toBe('not yours')
    expect(await listFiles(join(directory, '.upload-server'))).toEqual([])
  })

  it('does not follow a link that is put there between two puts', async () => {
    const { target, directory, outside } = await openWithOutside()
    await put(target, '2026/a.png')
    await rename(join(directory, '2026'), join(directory, 'old'))
    await symlink(outside, join(directory, '2026'))
    await failureOf(put(target, '2026/b.png'))
    expect(await readdir(outside)).toEqual(['secret.txt'])
  })

  it('neither finds, removes nor locates what lies behind a link that leads out', async () => {
    const { target, directory, outside } = await openWithOutside()
    await symlink(outside, join(directory, 'out'))
    await symlink(join(outside, 'secret.txt'), join(directory, 'file.txt'))
    await expect(target.exists?.('out/secret.txt', never())).rejects.toThrow(UploadError)
    await expect(target.remove?.('out/secret.txt', never())).rejects.toThrow(UploadError)
    expect(await locate(target, 'out/secret.txt')).toBeUndefined()
    expect(await locate(target, 'file.txt')).toBeUndefined()
    await target.remove?.('file.txt', never())
    await expect(lstat(join(directory, 'file.txt'))).rejects.toThrow('ENOENT')
    expect(await readdir(outside)).toEqual(['secret.txt'])
  })

  it('replaces a link in the place of an object, and leaves alone what it led to', async () => {
    const { target, directory, outside } = await openWithOutside()
    await symlink(join(outside, 'secret.txt'), join(directory, 'a.txt'))
    await symlink(join(outside, 'nothing'), join(directory, 'b.txt'))
    for (const key of ['a.txt', 'b.txt']) {
      await put(target, key, 'mine')
      expect((await lstat(join(directory, key))).isFile()).toBe(true)
      expect(await readFile(join(directory, key), 'utf8')).toBe('mine')
    }
    expect(await readdir(outside)).toEqual(['secret.txt'])
    expect(await readFile(join(outside, 'secret.txt'), 'utf8')).toBe('not yours')
  })

  it.each([
    ['is a broken symbolic link', 'nowhere'],
    ['leads nowhere outside', '../../nowhere'],
    ['leads to itself', 'dangling'],
  ])('refuses a folder that is a link which %s', async (_, to) => {
    const { target, directory } = await openWithOutside()
    await symlink(to, join(directory, 'dangling'))
    for (const key of ['dangling/a.png', 'dangling/b/c.png']) {
      const error = await failureOf(put(target, key))
      expect(error.message).toContain('is a broken symbolic link')
      expect(await target.exists?.(key, never())).toBe(false)
    }
    expect(await readlink(join(directory, 'dangling'))).toBe(to)
  })

  it('follows a link that stays inside, but to nothing hidden', async () => {
    const { target, directory } = await openWithOutside()
    await mkdir(join(directory, 'real'))
    await mkdir(join(directory, '.git'))
    await writeFile(join(directory, '.git/config'), 'x')
    await symlink('real', join(directory, 'alias'))
    await symlink('.git', join(directory, 'git'))
    await symlink('.git/config', join(directory, 'config'))
    await put(target, 'alias/a.png', 'inside')
    expect(await readFile(join(directory, 'real/a.png'), 'utf8')).toBe('inside')
    expect(await locate(target, 'alias/a.png')).toBe(join(directory, 'real/a.png'))
    await failureOf(put(target, 'git/hooks.png'))
    expect(await locate(target, 'git/config')).toBeUndefined()
    expect(await locate(target, 'config')).toBeUndefined()
  })

  it('works where the folder itself is a link, also after that link is turned', async () => {
    const [first, second] = [await makeRealDirectory(), await makeRealDirectory()]
    const current = join(await makeRealDirectory(), 'current')
    await symlink(first, current)
    const target = await openLocal(current)
    onTestFinished(() => target.close?.())
    await put(target, 'x/a.png', '1')
    expect(await locate(target, 'x/a.png')).toBe(join(first, 'x/a.png'))
    await unlink(current)
    await symlink(second, current)
    await put(target, 'x/a.png', '2')
    expect(await readFile(join(second, 'x/a.png'), 'utf8')).toBe('2')
    expect(await readFile(join(first, 'x/a.png'), 'utf8')).toBe('1')
  })

  it('does not spool through a planted ".upload-server"', async () => {
    const { target, directory, outside } = await openWithOutside()
    await symlink(outside, join(directory, '.upload-server'))
    await failureOf(put(target, 'a.png'))
    await failureOf(target.spool?.create() ?? Promise.resolve())
    expect(await readdir(outside)).toEqual(['secret.txt'])
  })
})

describe('what local locates', () => {
  it.each(['folder', 'fifo', 'absent.png', 'absent/a.png', 'a.png/b', `${'x/'.repeat(3000)}a`])(
    'nothing for %s',
    async key => {
      const { target, directory } = await openFresh()
      await put(target, 'a.png')
      await mkdir(join(directory, 'folder'))
      if (process.platform !== 'win32') execFileSync('mkfifo', [join(directory, 'fifo')])
      expect(await locate(target, key)).toBeUndefined()
    },
  )
})

describe('how local writes', () => {
  it('makes neither folder nor file before the first put', async () => {
    const { target, directory } = await openFresh()
    expect(await target.exists?.('a.png', never())).toBe(false)
    expect(await locate(target, 'a.png')).toBeUndefined()
    await target.remove?.('a.png', never())
    await expect(stat(directory)).rejects.toThrow('ENOENT')
  })

  it('leaves nothing but the objects behind, also after check and close', async () => {
    const { target, directory } = await openFresh({ durable: true })
    await target.check?.(never())
    await put(target, 'a/b.png')
    await target.close?.()
    expect(await readdir(directory, { recursive: true })).toEqual(['a', 'a/b.png'])
  })

  it('stores 100 files at once in the same new folder', async () => {
    const { target, directory } = await openFresh({ durable: true })
    const files = Array.from(
      { length: 100 },
      (_, i) => [`new/folder/${i}.bin`, Buffer.alloc(1000 + i, i)] as const,
    )
    await Promise.all(files.map(([key, bytes]) => put(target, key, bytes)))
    for (const [key, bytes] of files) expect(await readFile(join(directory, key))).toEqual(bytes)
    expect(await listFiles(join(directory, '.upload-server'))).toEqual([])
  })

  it.each(['0600', '666'])('gives files the mode %s, whatever the umask is', async fileMode => {
    const { target, directory } = await openFresh({ fileMode })
    const path = join(await makeRealDirectory(), 'payload')
    await writeFile(path, 'linked', { mode: 0o600 })
    await put(target, 'bytes')
    await target.put(objectOf('linked', path), never())
    for (const key of ['bytes', 'linked']) {
      expect((await stat(join(directory, key))).mode & 0o777).toBe(Number.parseInt(fileMode, 8))
    }
  })

  it.each(['0700', '777', '2770'])(
    'gives new folders the mode %s, and old ones none',
    async directoryMode => {
      const { target, directory } = await openFresh({ directoryMode })
      await mkdir(directory)
      await mkdir(join(directory, 'old'))
      await chmod(join(directory, 'old'), 0o711)
      await put(target, 'old/new/a')
      expect((await stat(join(directory, 'old'))).mode & 0o7777).toBe(0o711)
      expect((await stat(join(directory, 'old/new'))).mode & 0o7777).toBe(Number.parseInt(directoryMode, 8))
      expect((await stat(join(directory, '.upload-server'))).mode & 0o7777).toBe(0o700)
    },
  )

  it('makes the folder itself with its mode when payloads are spooled before the first put', async () => {
    const { target, directory } = await openFresh({ directoryMode: '0750' })
    const file = await target.spool?.create()
    await file?.file.close()
    expect((await stat(directory)).mode & 0o777).toBe(0o750)
    expect((await stat(dirname(file?.path ?? ''))).mode & 0o777).toBe(0o700)
  })

  it('keeps the group folders inherit', async () => {
    const { target, directory } = await openFresh()
    await mkdir(directory)
    await chmod(directory, 0o2755)
    await put(target, 'new/a')
    expect((await stat(join(directory, 'new'))).mode & 0o7777).toBe(0o2755)
  })

  it('refuses a body that is shorter or longer than it says', async () => {
    const { target, directory } = await openFresh()
    for (const size of [1000, 3 * MIB]) {
      const object = objectOf('a.bin', Buffer.alloc(size))
      for (const wrong of [size - 1, size + 1]) {
        const error = await failureOf(target.put({ ...object, size: wrong }, never()))
        expect(error.retryable).toBe(true)
      }
    }
    expect(await listFiles(directory)).toEqual([])
  })

  it('goes on when somebody removes its temporary folder or the whole folder', async () => {
    const { target, directory } = await openFresh()
    for (const gone of [join(directory, '.upload-server'), directory]) {
      await put(target, 'x/a.png')
      await rm(gone, { recursive: true })
      await put(target, 'x/b.png')
      expect(await target.exists?.('x/b.png', never())).toBe(true)
    }
  })
})

describe('payloads that local links', () => {
  it('does not write the bytes again, and leaves the payload to others', async () => {
    const { target, directory } = await openFresh({ durable: true })
    const path = await spoolPayload(target, Buffer.alloc(3 * MIB, 7))
    const { ino } = await stat(path)
    await target.put(objectOf('a/b.bin', path), never())
    expect(await stat(join(directory, 'a/b.bin'))).toMatchObject({ ino, nlink: 2 })
    await unlink(path)
    expect(await stat(join(directory, 'a/b.bin'))).toMatchObject({ ino, nlink: 1, size: 3 * MIB })
  })

  it('leaves no temporary name when the same payload goes to the same key again', async () => {
    const { target, directory } = await openFresh()
    const path = await spoolPayload(target, Buffer.alloc(10))
    for (let time = 0; time < 3; time++) await target.put(objectOf('a.bin', path), never())
    expect((await stat(path)).nlink).toBe(2)
    expect(await listFiles(directory)).toHaveLength(2)
  })

  it('replaces the name, not the bytes, of an object that was linked before', async () => {
    const { target, directory } = await openFresh()
    const path = await spoolPayload(target, Buffer.from('first'))
    await target.put(objectOf('a.bin', path), never())
    await link(join(directory, 'a.bin'), join(directory, 'kept.bin'))
    await put(target, 'a.bin', 'second')
    expect(await readFile(join(directory, 'kept.bin'), 'utf8')).toBe('first')
    expect(await readFile(path, 'utf8')).toBe('first')
  })
})

it('stores while others that have stored in the same folder close, as reloads, workers and commands do', async () => {
  const directory = join(await makeRealDirectory(), 'pictures')
  const one = async (worker: number) => {
    for (let time = 0; time < 60; time++) {
      const target = await openLocal(directory)
      const path = await spoolPayload(target, Buffer.of(time))
      await target.put(objectOf(`${worker}/${time}-linked`, path), never())
      await target.put(objectOf(`${worker}/${time}`, Buffer.of(time)), never())
      await unlink(path)
      await target.close?.()
    }
  }
  await Promise.all(Array.from({ length: 6 }, (_, worker) => one(worker)))
  expect(await listFiles(directory)).toHaveLength(6 * 60 * 2)
  expect(await readdir(directory)).not.toContain('.upload-server')
})

it('copies what was spooled for another folder: a mirror keeps its bytes and its mode to itself', async () => {
  const { target: primary, directory } = await openFresh({ fileMode: '0600' })
  const { target: mirror, directory: copies } = await openFresh({ fileMode: '0644' })
  const path = await spoolPayload(primary, Buffer.from('bytes'))
  await primary.put(objectOf('a.txt', path), never())
  await mirror.put(objectOf('a.txt', path), never())
  await primary.put(objectOf('second name.txt', path), never())
  expect((await stat(join(directory, 'a.txt'))).mode & 0o777).toBe(0o600)
  expect((await stat(join(copies, 'a.txt'))).mode & 0o777).toBe(0o644)
  for (const place of [join(copies, 'a.txt'), join(directory, 'second name.txt')])
    await writeFile(place, 'changed')
  expect(await readFile(join(directory, 'a.txt'), 'utf8')).toBe('bytes')
})

describe('a folder that cannot be written', () => {
  it('is a file: says so, and names no path', async () => {
    const { target, directory } = await openFresh()
    await writeFile(directory, 'I am a file')
    for (const work of [
      async () => put(target, 'x/a.bin'),
      async () => target.check?.(never()),
      async () => target.spool?.create(),
    ]) {
      const error = await failureOf(work())
      expect(error).toMatchObject({
        code: 'destination_failed',
        message: expect.stringContaining('a file exists where a folder is needed'),
      })
      expect(error.message).not.toContain(directory)
    }
    expect(await readFile(directory, 'utf8')).toBe('I am a file')
  })

  it.each([
    ['a file where a folder is needed', 'a.png/b.png', 'a file exists where a folder is needed'],
    ['a folder where the file goes', 'folder', 'a folder or a special file'],
  ])('has %s', async (_, key, words) => {
    const { target, directory } = await openFresh()
    await put(target, 'a.png')
    await put(target, 'folder/in/it.png')
    const error = await failureOf(put(target, key))
    expect(error).toMatchObject({ code: 'destination_failed', message: expect.stringContaining(words) })
    expect((await listFiles(directory)).sort()).toEqual([
      join(directory, 'a.png'),
      join(directory, 'folder/in/it.png'),
    ])
  })
})

describe('what local says of an error of the disk', () => {
  it.each([
    ['ENOSPC', 'insufficient_storage', false, /is full \(ENOSPC\)\.$/],
    ['EDQUOT', 'insufficient_storage', false, /quota is exceeded \(EDQUOT\)\.$/],
    ['EROFS', 'insufficient_storage', false, 'read-only'],
    ['EACCES', 'destination_failed', false, 'Give the user of upload-server write access'],
    ['EMFILE', 'destination_failed', true, 'EMFILE'],
    ['EIO', 'destination_failed', false, /\(EIO\)\. Check the server's log\.$/],
  ])('%s: %s, may pass: %s, "%s"', async (systemCode, code, retryable, words) => {
    const cause = Object.assign(new Error(`${systemCode}: open '/srv/pictures/a.png'`), { code: systemCode })
    const error = await failureOf(explained(() => Promise.reject(cause)))
    expect(error).toMatchObject({ code, retryable, cause, message: expect.stringMatching(words) })
    expect(error.message).not.toContain('/srv')
  })
})

describe('temporary files of killed servers', () => {
  /** The directory a process of that number would have used, with a file in it. */
  async function leaveBehind(target: OpenTarget, directory: string, pid: number): Promise<string> {
    const own = basename(target.spool?.directory ?? '')
    const name = own.replace(/\.\d+(?:-\d*)?\./, `.${pid}.`).replace(/.{12}$/, randomBytes(6).toString('hex'))
    const path = join(directory, '.upload-server', name)
    await mkdir(path, { recursive: true })
    await writeFile(join(path, '1'), 'half')
    return path
  }

  it('are gone after the first put, those of running ones stay', async () => {
    const { target, directory } = await openFresh()
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'])
    const killed = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'])
    onTestFinished(() => void child.kill())
    killed.kill('SIGKILL')
    await once(killed, 'exit')
    const left: string[] = []
    for (let i = 0; i < 200; i++) left.push(await leaveBehind(target, directory, killed.pid ?? 0))
    const used = await leaveBehind(target, directory, child.pid ?? 0)

    const next = await openLocal(directory)
    await put(next, 'a.png')
    for (const path of left) await expect(stat(path)).rejects.toThrow('ENOENT')
    expect(await readdir(used)).toEqual(['1'])
    await next.close?.()
    expect(await readdir(used)).toEqual(['1'])
  })

  it('of another destination in this process with the same folder are not taken for them', async () => {
    const { target, directory } = await openFresh()
    const file = await target.spool?.create()
    await file?.file.close()
    const other = await openLocal(directory, {}, 'other')
    await put(other, 'a.png')
    await other.close?.()
    expect((await stat(file?.path ?? '')).size).toBe(0)
  })
})
