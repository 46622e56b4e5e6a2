import { chmod, mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { startFaultProxy } from '../../../../src/provider-tests/fault-proxy.ts'
import { webdav } from '../../../../src/providers/webdav/index.ts'
import { makeDirectory } from '../../../helpers/directory.ts'
import { failureOf } from '../../../helpers/failure-of.ts'
import { mountSmall } from '../../../helpers/mount-small.ts'
import { hasAll, needs, needsAll } from '../../../helpers/needs.ts'
import { fetchPublic, never, type Options, open as openTarget, put } from '../../../helpers/target.ts'
import { APACHE_NEEDS, startApacheDav } from '../../../servers/apache-dav.ts'
import type { DavServer } from '../../../servers/dav-server.ts'
import { NGINX_DAV_NEEDS, startNginxDav } from '../../../servers/nginx-dav.ts'
import { startTlsProxy } from '../../../servers/tls-proxy.ts'

const MIB = 1024 * 1024

const open = ({ url, username, password }: DavServer, more: Options = {}) =>
  openTarget(webdav, { url, username, password, ...more })

/** Everything on the server, temporary files included. */
async function filesOf(server: DavServer): Promise<string[]> {
  const entries = await readdir(server.directory, { recursive: true, withFileTypes: true })
  const files = entries.filter(entry => entry.isFile() && !entry.parentPath.includes('/.DAV'))
  return files.map(entry => join(entry.parentPath, entry.name).slice(server.directory.length + 1)).sort()
}

describe.each([
  ['Apache', () => startApacheDav(), APACHE_NEEDS],
  ['nginx', () => startNginxDav(), NGINX_DAV_NEEDS],
  ['nginx without PROPFIND', () => startNginxDav({ extended: false }), NGINX_DAV_NEEDS],
] as const)('at %s', (_, start, requires) => {
  let server: DavServer

  beforeAll(async () => {
    if (hasAll(requires)) server = await start()
  })
  beforeEach(async context => {
    needsAll(context, requires)
    await rm(server.directory, { recursive: true })
    await mkdir(server.directory, { mode: 0o777 })
    await chmod(server.directory, 0o777)
  })
  afterAll(() => server?.close())

  it('stores in a folder that somebody else has made', async () => {
    await put(await open(server), 'theirs/1.txt')
    await put(await open(server), 'theirs/2.txt')
    await expect.poll(() => filesOf(server)).toEqual(['theirs/1.txt', 'theirs/2.txt'])
  })

  it('does not replace a folder by a file, with all that is in it', async () => {
    const target = await open(server)
    await put(target, 'folder/in/it.txt')
    const error = await failureOf(put(target, 'folder/in'))
    expect(error).toMatchObject({ code: 'destination_failed', retryable: false })
    expect(error.message).toContain('a folder named "in" already exists')
    await expect(target.remove?.('folder/in', never())).rejects.toThrow('already exists')
    await expect.poll(() => filesOf(server)).toEqual(['folder/in/it.txt'])
  })

  it('says that a file is in the place of a folder', async () => {
    const target = await open(server)
    await put(target, 'a.txt')
    const error = await failureOf(put(target, 'a.txt/b.txt'))
    expect(error).toMatchObject({ code: 'destination_failed', retryable: false })
    expect(error.message).toContain('a file named "a.txt" already exists')
    await expect.poll(() => filesOf(server)).toEqual(['a.txt'])
    await target.remove?.('a.txt', never())
    await put(target, 'a.txt/b.txt')
  })

  it('refuses a wrong password in the midst of a large file, at once and once', async () => {
    const target = await open(server, { password: 'wrong' })
    const error = await failureOf(put(target, 'large.bin', Buffer.alloc(32 * MIB)))
    expect(error).toMatchObject({ code: 'destination_failed', retryable: false })
    expect(error.message).toBe(
      `Could not store "large.bin" at webdav/Default: 127.0.0.1:${server.port} returned 401 (it rejected the login). Check "username" and "password".`,
    )
    await expect.poll(() => filesOf(server)).toEqual([])
  })

  it('asks for a login when none is configured', async () => {
    const target = await open(server, { username: undefined, password: undefined })
    expect((await failureOf(put(target, 'a.txt'))).message).toContain('Set "username" and "password"')
  })

  it('says that a redirect is none of its answers', async () => {
    const proxy = await startFaultProxy(server.port, () => ({
      status: 301,
      headers: { location: 'https://dav.example.com/dav/' },
    }))
    onTestFinished(proxy.close)
    const target = await open({ ...server, url: `http://127.0.0.1:${proxy.port}/dav` })
    const { message } = await failureOf(put(target, 'x/a.txt'))
    expect(message).toContain('(a redirect): redirect to dav.example.com/dav/. Use the final URL.')
  })
})

describe('what only one of them does', () => {
  it('Apache: a file that somebody has locked is not replaced', async context => {
    needsAll(context, APACHE_NEEDS)
    const server = await startApacheDav()
    onTestFinished(server.close)
    const target = await open(server)
    const { url } = await put(target, 'a.txt', 'before')
    const login = Buffer.from(`${server.username}:${server.password}`).toString('base64')
    const lock = await fetch(url, {
      method: 'LOCK',
      headers: { authorization: `Basic ${login}` },
      body: LOCK,
    })
    expect(lock.status).toBe(200)
    const error = await failureOf(put(target, 'a.txt', 'after'))
    expect(error).toMatchObject({ code: 'destination_failed', retryable: false })
    expect(error.message).toContain('returned 423 (the file is locked)')
    expect((await fetchPublic({ url })).toString()).toBe('before')
    await expect.poll(() => filesOf(server)).toEqual(['a.txt'])
  })

  it.for([true, false])('Apache: a full disk leaves nothing half (atomic: %s)', async (atomic, context) => {
    needsAll(context, APACHE_NEEDS)
    const server = await startApacheDav()
    onTestFinished(server.close)
    await mountSmall(context, join(server.directory, 'small'), '1m')
    const target = await open(server, { directory: 'small', atomic })
    await put(target, 'a.bin', 'before')
    const error = await failureOf(put(target, 'a.bin', Buffer.alloc(2 * MIB)))
    expect(error).toMatchObject({ code: 'insufficient_storage', retryable: false })
    expect(error.message).toMatch(/returned 507 \(no space left\)\./)
    await expect.poll(() => filesOf(server)).toEqual(['small/a.bin'])
    await put(target, 'b.bin', 'small')
  })

  it('Apache: a proxy before it that speaks TLS is not taken for another server', async context => {
    needsAll(context, APACHE_NEEDS)
    needs(context, 'openssl', 'openssl')
    const server = await startApacheDav()
    onTestFinished(server.close)
    const proxy = await startTlsProxy(server.port, await makeDirectory())
    onTestFinished(proxy.close)
    const target = await open({ ...server, url: `${proxy.url}/dav/` }, { caFile: proxy.caFile })
    for (const text of ['first', 'second']) {
      await put(target, 'x/a.txt', text)
      expect((await fetchPublic({ url: `${server.url}/x/a.txt` })).toString()).toBe(text)
    }
    await expect.poll(() => filesOf(server)).toEqual(['x/a.txt'])
    const strict = await open({ ...server, url: `${proxy.url}/dav/` })
    const error = await failureOf(put(strict, 'x/a.txt'))
    expect(error).toMatchObject({ retryable: false })
    expect(error.message).toContain('Set "caFile"')
  })

  it('nginx: a file that is too large for it', async context => {
    needsAll(context, NGINX_DAV_NEEDS)
    const server = await startNginxDav({ maxBody: '1k' })
    onTestFinished(server.close)
    const error = await failureOf(put(await open(server), 'small.bin', Buffer.alloc(8 * MIB)))
    expect(error).toMatchObject({ code: 'destination_failed', retryable: false })
    expect(error.message).toContain('returned 413 (the file is too large)')
    await expect.poll(() => filesOf(server)).toEqual([])
  })

  it('nginx: without MOVE it says what to set, and then does without', async context => {
    needsAll(context, NGINX_DAV_NEEDS)
    const server = await startNginxDav({ methods: 'PUT DELETE MKCOL' })
    onTestFinished(server.close)
    const error = await failureOf(put(await open(server), 'a.txt'))
    expect(error.message).toContain('returned 405 (it cannot rename files')
    await expect.poll(() => filesOf(server)).toEqual([])
    await put(await open(server, { atomic: false }), 'a.txt')
    await expect.poll(() => filesOf(server)).toEqual(['a.txt'])
  })
})

const LOCK =
  '<lockinfo xmlns="DAV:"><lockscope><exclusive/></lockscope><locktype><write/></locktype></lockinfo>'
