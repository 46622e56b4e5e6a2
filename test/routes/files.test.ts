import { execFileSync } from 'node:child_process'
import { mkdir, rename, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { ask, expectEnvelope, type Question, type Reply } from '../helpers/ask.ts'
import { makePicture } from '../helpers/picture.ts'
import { shareApp, startApp, type TestApp } from '../helpers/start-app.ts'

const SECRET = 'nobody may read this'

function configOf(serve = true) {
  const Default = {
    directory: './pictures',
    serve,
    ...(!serve && { urlPrefix: 'https://img.example.com' }),
  }
  return { providers: { local: { Default } } }
}

/** A server that hands out a folder, and a way to put files there and to ask for them. */
async function serveFolder(options: Record<string, unknown> = {}, serve = true) {
  return folderOf(await startApp({ config: { ...configOf(serve), ...options } }))
}

async function folderOf(app: TestApp) {
  const folder = join(app.directory, 'pictures')
  await mkdir(folder, { recursive: true })
  await writeFile(join(app.directory, 'secret.txt'), SECRET)
  return {
    app,
    folder,
    put: async (name: string, content: string | Buffer) => {
      await mkdir(dirname(join(folder, name)), { recursive: true })
      await writeFile(join(folder, name), content)
    },
    get: (name: string, headers: Question['headers'] = {}, method = 'GET') =>
      ask(app.url, method, `/files/Default/${name}`, { headers }),
  }
}

/** A failure that no cache keeps and that says nothing of the file. */
function expectRefusal(reply: Reply, status: number): void {
  expect(reply.status).toBe(status)
  expectEnvelope(reply)
  for (const name of ['cache-control', 'etag', 'last-modified', 'content-disposition'])
    expect(reply.headers).not.toHaveProperty(name)
  expect(reply.body).not.toContain(SECRET)
}

/** For tests that put their own files there. */
const shared = shareApp({ config: configOf() })

describe('a stored file is served with the type found in its bytes:', () => {
  it.for<[name: string, content: string | Buffer, type: string, disposition: 'inline' | 'attachment']>([
    ['a.png', makePicture(), 'image/png', 'inline'],
    ['no-extension', makePicture(), 'image/png', 'inline'],
    ['picture.html', makePicture(), 'image/png', 'inline'],
    ['a.gif', 'GIF89a\x01\0\x01\0\0\0\0;', 'image/gif', 'inline'],
    ['a.pdf', '%PDF-1.4\n', 'application/pdf', 'inline'],
    ['a.txt', 'hello', 'text/plain; charset=utf-8', 'inline'],
    ['umlauts.png', 'äöü', 'text/plain; charset=utf-8', 'inline'],
    ['page.png', '<!doctype html><script>alert(1)</script>', 'text/html; charset=utf-8', 'attachment'],
    ['page.txt', ' \n<ScRipt>alert(1)</script>', 'text/html; charset=utf-8', 'attachment'],
    ['comment.png', '<!-- --><img src=x onerror=alert(1)>', 'text/plain; charset=utf-8', 'inline'],
    ['drawing.svg', '<svg xmlns="http://www.w3.org/2000/svg"/>', 'image/svg+xml', 'attachment'],
    ['drawing.png', '<?xml version="1.0"?><svg onload="alert(1)"/>', 'image/svg+xml', 'attachment'],
    ['a.xml', '<?xml version="1.0"?><a/>', 'application/xml', 'attachment'],
    ['a.zip', Buffer.from('504b0506'.padEnd(44, '0'), 'hex'), 'application/zip', 'attachment'],
    ['style.css', 'a { color: red }', 'text/css; charset=utf-8', 'inline'],
    ['module.mjs', 'export {}', 'text/plain; charset=utf-8', 'inline'],
    ['README.md', '<p>Title</p>', 'text/markdown; charset=utf-8', 'inline'],
    [
      'long-comment.svg',
      `<!-- ${'x'.repeat(9000)} --><svg onload="alert(1)"/>`,
      'image/svg+xml',
      'attachment',
    ],
    ['a.js', Buffer.from([1, 2, 3]), 'application/octet-stream', 'attachment'],
    ['empty.png', '', 'application/octet-stream', 'attachment'],
  ])('%s', async ([name, content, type, disposition]) => {
    const { put, get } = await folderOf(shared())
    await put(name, Buffer.from(content as string, 'utf8'))
    const reply = await get(name)
    expect(reply.status).toBe(200)
    expect(reply.headers['content-type']).toBe(type)
    expect(reply.headers['content-disposition'] ?? 'inline').toMatch(new RegExp(`^${disposition}`))
    expect(reply.headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'content-security-policy': "sandbox; default-src 'none'",
      'access-control-allow-origin': '*',
    })
  })

  it('a name with quotes cannot break out of Content-Disposition', async () => {
    const { put, get } = await serveFolder()
    const name = 'a"; x="; filename=b.png; y=.html'
    await put(name, '<html>')
    const { headers } = await get(encodeURIComponent(name))
    expect(headers['content-disposition']).toMatch(
      /^attachment; filename="(?:[^"\\]|\\.)*"(?:; filename\*=UTF-8''[^;"]*)?$/,
    )
  })
})

describe('nothing but stored files can be fetched:', () => {
  const ODD = 'a\r\nSet-Cookie: a=b;.html'
  const hostile = shareApp({ config: configOf() })
  beforeAll(async () => {
    const { app, folder, put } = await folderOf(hostile())
    for (const name of ['a.png', 'sub/b.png', 'sub/.hidden', '.hidden/a.png', '.upload-server/x', ODD])
      await put(name, SECRET)
    execFileSync('mkfifo', [join(folder, 'pipe')])
    await symlink(join(app.directory, 'secret.txt'), join(folder, 'link.txt'))
    await symlink(app.directory, join(folder, 'linked'))
    await symlink('loop', join(folder, 'loop'))
    await symlink('nowhere', join(folder, 'dangling'))
  })

  const TARGETS = [
    ' / . .. ../ ../secret.txt sub/../../secret.txt ./a.png sub/./b.png sub/../a.png %2e%2e/secret.txt',
    '%2e%2e%2fsecret.txt ..%2fsecret.txt ..%2Fsecret.txt ..%5csecret.txt ..\\secret.txt sub%2fb.png sub%5cb.png',
    'sub\\b.png %252e%252e%252fsecret.txt ..;/secret.txt ....//secret.txt %2fetc%2fpasswd C:%5cWindows%5cwin.ini',
    'file:%2f%2f%2fetc%2fpasswd a.png%00 a.png%00.txt %00 a.png%0a a.png%20 a.png. sub sub/ a.png/x a.png::$DATA',
    '.hidden .hidden/a.png %2ehidden sub/.hidden .upload-server/x link.txt linked/secret.txt linked loop dangling',
    `pipe A.PNG ${encodeURIComponent(ODD)} ${'x'.repeat(300)} ${'x/'.repeat(2000)}a.png`,
  ].flatMap(line => line.split(' '))

  it.for(TARGETS)('%s', async target => {
    const { get } = await folderOf(hostile())
    for (const method of ['GET', 'HEAD']) {
      const reply = await get(target, {}, method)
      expectRefusal(reply, 404)
      expect(reply.headers).not.toHaveProperty('set-cookie')
    }
  })

  it.for(['default/a.png', 'local/a.png', '/a.png', 'Default%2fa.png', '../Files/Default/a.png'])(
    '/files/%s',
    async target => expectRefusal(await ask(hostile().url, 'GET', `/files/${target}`), 404),
  )

  it('a configuration that does not say "serve" hands out nothing', async () => {
    const { put, get } = await serveFolder({}, false)
    await put('a.png', SECRET)
    expectRefusal(await get('a.png'), 404)
  })

  it('what a link inside the folder names is served as long as it stays inside', async () => {
    const { folder, put, get } = await serveFolder()
    await put('sub/b.txt', 'hello')
    await symlink('sub', join(folder, 'inside'))
    expect(await get('inside/b.txt')).toMatchObject({ status: 200, body: 'hello' })
  })
})

// Express handles ranges and conditions. What is ours: the ETag, suffixes longer than the file, and the words of refusals.
describe('ranges and conditions:', () => {
  const CONTENT = '0123456789'

  it.for([
    ['bytes=0-3', 206, '0123', 'bytes 0-3/10'],
    ['bytes=-3', 206, '789', 'bytes 7-9/10'],
    ['bytes=-100', 206, CONTENT, 'bytes 0-9/10'],
    ['bytes=10-', 416, undefined, 'bytes */10'],
    ['lines=0-1', 200, CONTENT, undefined],
  ] as const)('Range %s: %i', async ([range, status, body, contentRange]) => {
    const { put, get } = await folderOf(shared())
    await put('range.txt', CONTENT)
    const reply = await get('range.txt', { Range: range })
    expect(reply.headers['content-range']).toBe(contentRange)
    if (body === undefined) expectRefusal(reply, status)
    else expect(reply).toMatchObject({ status, body })
  })

  it('an ETag stands for the bytes', async () => {
    const { folder, put, get } = await serveFolder()
    await put('a.txt', CONTENT)
    const etag = String((await get('a.txt')).headers.etag)
    const same = await get('a.txt', { 'If-None-Match': etag })
    expect(same).toMatchObject({ status: 304, body: '' })
    expectEnvelope(same)
    const part = { Range: 'bytes=0-1', 'If-Range': etag }
    expect(await get('a.txt', part)).toMatchObject({ status: 206, body: '01' })
    expectRefusal(await get('a.txt', { 'If-Match': '"other"' }), 412)
    // Replaced as the server does it, by another file of the same size.
    await put('b.txt', '9876543210')
    await rename(join(folder, 'b.txt'), join(folder, 'a.txt'))
    expect(await get('a.txt', { 'If-None-Match': etag })).toMatchObject({ status: 200, body: '9876543210' })
    expect(await get('a.txt', part)).toMatchObject({ status: 200 })
  })

  it.for([
    ['{Y}/{filename}-{sha256-8}{extname}', 'public, max-age=31536000, immutable'],
    ['{uuid}{extname}', 'public, max-age=31536000, immutable'],
    ['{filename}{extname}', 'public, max-age=3600'],
  ] as const)('a key like %s is kept in caches as %s', async ([keyTemplate, expected]) => {
    const { put, get } = await serveFolder({ keyTemplate })
    await put('a.txt', CONTENT)
    expect((await get('a.txt')).headers['cache-control']).toBe(expected)
  })
})
