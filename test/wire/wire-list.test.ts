import { execFileSync } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { expectFailure, expectLinks, expectStored } from '../helpers/expect-answer.ts'
import { list, post } from '../helpers/form.ts'
import { makePicture } from '../helpers/picture.ts'
import { sendUpload } from '../helpers/raw-request.ts'
import { startApp, type TestApp } from '../helpers/start-app.ts'
import { serve } from '../uploader/sources/servers.ts'

const JSON_TYPE = 'Content-Type: application/json'
const PIC = makePicture()
const PAGE = '<!doctype html><title>x</title>'

async function startWithPicture() {
  const app = await startApp()
  const file = makePicture()
  const path = join(app.directory, 'a b.png')
  await writeFile(path, file)
  return { app, file, path, send: (...entries: unknown[]) => post(`${app.url}/upload`, list(...entries)) }
}

/** Nothing but what the test itself put there. */
const storedFiles = async (app: TestApp) => (await app.files()).filter(name => name.startsWith('data'))

describe('POST /upload with a list', () => {
  it('of one path, of two, of the same twice', async () => {
    const { app, file, path, send } = await startWithPicture()
    const other = join(app.directory, 'b.png')
    await writeFile(other, PIC)
    await expectStored(await send(path), [file])
    await expectStored(await send(path, other), [file, PIC])
    await expectStored(await send(path, other, path), [file, PIC, file])
  })

  it.each([
    ['a file: address', (path: string) => pathToFileURL(path).href],
    ['a FILE: address', (path: string) => pathToFileURL(path).href.replace('file', 'FILE')],
    ['a file: address of localhost', (path: string) => pathToFileURL(path).href.replace('//', '//localhost')],
  ])('of %s', async (_what, toEntry) => {
    const { file, path, send } = await startWithPicture()
    const answer = await send(toEntry(path))
    await expectStored(answer, [file])
    expect(answer.items[0]?.origin).toBe(toEntry(path))
  })

  it.each([
    ['base64', (file: Buffer) => `data:image/png;base64,${file.toString('base64')}`],
    ['DATA: and base64 without a type', (file: Buffer) => `DATA:;base64,${file.toString('base64')}`],
    ['percent escapes', (file: Buffer) => `data:,${file.toString('hex').replace(/../g, '%$&')}`],
  ])('of a data: address with %s', async (_what, toEntry) => {
    const { file, send } = await startWithPicture()
    await expectStored(await send(toEntry(file)), [file])
  })

  it.each<[string, string, string | Buffer]>([
    ['of a picture', '/p/图.png', PIC],
    ['without an extension', '/p/image', PIC],
    ['with a query', '/p/a.png?sig=%2F%3D&x=a+b', PIC],
    ['that redirects', '/redirect', PIC],
    ['of a page', '/page', PAGE],
  ])('of an address %s', async (_what, path, expected) => {
    const { send } = await startWithPicture()
    const web = await serve((req, res) => {
      if (req.url === '/redirect') res.writeHead(302, { location: '/p/a.png' }).end()
      else res.end(req.url === '/page' ? PAGE : PIC)
    })
    for (const origin of [web.origin, web.origin.replace('http', 'HTTP')]) {
      const answer = await send(origin + path)
      await expectStored(answer, [expected])
      expect(answer.items[0]?.origin).toBe(origin + path)
    }
  })

  it('in 12 MB of JSON', async () => {
    const { app, file, path } = await startWithPicture()
    const body = JSON.stringify({ padding: 'x'.repeat(12_000_000), list: [path] })
    await expectStored(await sendUpload(app.url, { headers: [JSON_TYPE], body }), [file])
  })

  it.each([
    'picbed=local',
    'picbed=&configName=',
    'configName=Default',
    'picbed=local&configName=Default',
    'uploader=local',
    'unknown=1&secret=left&key=over&configId=1',
    'finalizationId=',
  ])('and the query %s', async query => {
    const { app, file, path } = await startWithPicture()
    await expectStored(await post(`${app.url}/upload?${query}`, list(path)), [file])
  })
})

describe('POST /upload with a list that can not all be had', () => {
  it.each([
    ['a missing path', '/nowhere/a.png', 422, 'source_failed'],
    ['a folder', '/', 422, 'source_failed'],
    ['a path of Windows', 'C:\\x.png', 422, 'source_failed'],
    ['a share of Windows', '\\\\host\\share\\x.png', 422, 'source_failed'],
    ['a missing file: address', 'file:///nowhere/a.png', 422, 'source_failed'],
    ['a device', '/dev/zero', 403, 'source_forbidden'],
    ['a file of the kernel', '/proc/self/environ', 403, 'source_forbidden'],
    ['a file of the kernel, in disguise', '/usr/../proc/self/environ', 403, 'source_forbidden'],
  ])('%s', async (_what, entry, status, code) => {
    const { app, send } = await startWithPicture()
    const answer = await send(entry)
    expectFailure(answer, status, code)
    expect(answer.errors).toMatchObject([{ index: 0, origin: entry, code }])
    expect(answer.message).toContain(entry.replace('file://', ''))
    expect(await storedFiles(app)).toEqual([])
  })

  it('a pipe that nobody writes to does not make it wait', async () => {
    const { app, send } = await startWithPicture()
    const pipe = join(app.directory, 'pipe')
    execFileSync('mkfifo', [pipe])
    expectFailure(await send(pipe), 422, 'source_failed')
  })

  it('a good path, a missing one, a good one: two links and one error', async () => {
    const { file, path, send } = await startWithPicture()
    const answer = await send(path, '/nowhere/b.png', path)
    expectFailure(answer, 422, 'source_failed')
    expect(answer.errors).toMatchObject([{ index: 1, origin: '/nowhere/b.png', code: 'source_failed' }])
    expect(answer.items.map(item => item.index)).toEqual([0, 2])
    await expectLinks(answer.result, [file, file])
  })

  it.each([
    ['a path', '/nowhere/http://a.example/b.png', 422],
    ['a path in capitals', '/nowhere/HTTPS://a.example/b.png', 422],
    ['no path at all', 'see http://a.example/b.png', 400],
  ])(
    'an address within %s is in no message, where some clients would take it for the picture',
    async (_what, entry, status) => {
      const { send } = await startWithPicture()
      const answer = await send(entry)
      expectFailure(answer, status, status === 422 ? 'source_failed' : 'invalid_request')
      expect(answer.message).toContain('a.example/b.png')
    },
  )

  it('the status is that of the first that failed', async () => {
    const { app, send } = await startWithPicture()
    await mkdir(join(app.directory, 'folder'))
    expectFailure(await send('/dev/zero', join(app.directory, 'folder')), 403, 'source_forbidden')
    expectFailure(await send(join(app.directory, 'folder'), '/dev/zero'), 422, 'source_failed')
  })

  it('an address that answers 404, one that nobody listens on', async () => {
    const { file, path, send } = await startWithPicture()
    const web = await serve((_req, res) => res.writeHead(404).end('gone'))
    const closed = createServer().listen(0, '127.0.0.1')
    await new Promise(resolve => closed.once('listening', resolve))
    const { port } = closed.address() as { port: number }
    await new Promise(resolve => closed.close(resolve))
    const answer = await send(path, `${web.origin}/a.png`, `http://127.0.0.1:${port}/b.png`)
    expectFailure(answer, 422, 'source_failed')
    expect(answer.errors.map(error => error.index)).toEqual([1, 2])
    await expectLinks(answer.result, [file])
  })
})

it.each([
  ['a path of Windows', '{"list":["C:\\Users\\me\\a.png"]}', 'write each \\ of a path as \\\\'],
  ['a comma too many', '{"list":["/a.png",]}', 'check for an extra or missing comma'],
  ['something else', 'a.png', 'neither a form nor JSON'],
  ['a path in quotes', JSON.stringify({ list: ['"/a.png"'] }), 'list[0] contains quotation marks'],
])('%s in a body is told from other mistakes', async (_what, body, message) => {
  const { url } = await startApp()
  const response = await fetch(`${url}/upload`, { method: 'POST', body })
  expect(response.status).toBe(400)
  expect(((await response.json()) as { message: string }).message).toContain(message)
})
