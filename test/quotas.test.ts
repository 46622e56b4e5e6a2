import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { runCli } from './cli/run-cli.ts'
import { ask } from './helpers/ask.ts'
import { makeDirectory } from './helpers/directory.ts'
import { formOf, post } from './helpers/form.ts'
import { sendRaw } from './helpers/raw-request.ts'
import { startApp } from './helpers/start-app.ts'
import { startStubBucket } from './helpers/stub-bucket.ts'
import { serve } from './uploader/sources/servers.ts'

const KEY = 'k3y-with-a-quota'
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

const config = (key: object, more: object = {}) => ({
  auth: { loopbackExempt: false, keys: [{ name: 'ci', key: KEY, ...key }] },
  ...more,
})

const send = (url: string, files: Record<string, string | Uint8Array>, headers: object = {}) =>
  post(`${url}/upload`, { body: formOf(files), headers: { 'X-Upload-Key': KEY, ...headers } })

const codes = (answer: object) => (answer as { errors?: { code: string }[] }).errors?.map(({ code }) => code)
const named = (count: number, content = 'x') =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`${n}.txt`, `${content}${n}`]))

describe('a quota', () => {
  it('refuses files beyond it, each for itself, and says when to come again', async () => {
    const app = await startApp({
      config: config({ quota: { files: 3, per: '1d' } }, { metrics: { enabled: true } }),
    })
    const answer = await send(app.url, named(5))
    expect(answer).toMatchObject({ status: 429, code: 'quota_exceeded' })
    expect(answer.result).toHaveLength(3)
    expect(codes(answer)).toEqual(['quota_exceeded', 'quota_exceeded'])
    const next = await ask(app.url, 'PUT', '/upload/a.txt', { headers: { 'X-Upload-Key': KEY }, body: 'a' })
    expect(next.status).toBe(429)
    expect(Number(next.headers['retry-after'])).toBeGreaterThan(0)
    expect(Number(next.headers['retry-after'])).toBeLessThanOrEqual(86_400)
    expect(next.body).toContain('3 files in 1d')
    expect(next.headers['ratelimit-policy']).toBe('"files";q=3;w=86400;qu="files"')
    expect(next.headers['ratelimit']).toMatch(/^"files";r=0;t=\d+$/)
    expect(await app.files()).toHaveLength(3)
    const cli = { cwd: app.directory, env: { XDG_DATA_HOME: join(app.directory, 'data') } }
    expect((await runCli(['history', 'quotas'], cli)).stdout).toMatch(
      / 00:00:00 {2}1d {2}ci {2}3 files, 6 B$/m,
    )
    expect(app.log.at(-1)).toMatchObject({
      caller: 'ci',
      err: { code: 'quota_exceeded' },
      address: '127.0.0.1',
    })
  })

  it('says of a file that is larger than all of it that it never fits', async () => {
    const app = await startApp({ config: config({ quota: { bytes: '100B', per: '1h' } }) })
    const answer = await send(app.url, { 'a.txt': 'a'.repeat(101) })
    expect(answer).toMatchObject({ status: 413, code: 'too_large' })
    expect(answer.message).toContain('exceeds the whole quota')
  })

  it('was not used by a client that left when all was sent, and no history knew the file, which never expired', async () => {
    const bucket = await startStubBucket()
    const s3 = { main: { ...bucket.options, expiry: { default: '30d' } } }
    const app = await startApp({ config: config({ quota: { files: 1, per: '1d' } }, { providers: { s3 } }) })
    bucket.hold()
    const leaver = new AbortController()
    const headers = { 'X-Upload-Key': KEY }
    const left = post(`${app.url}/upload`, { body: formOf(named(1)), headers, signal: leaver.signal })
    await expect.poll(() => bucket.puts).toHaveLength(1)
    leaver.abort()
    await expect(left).rejects.toThrow()
    await expect.poll(() => app.rawLog()).toContain('client disconnected')
    bucket.letGo()
    const cli = { cwd: app.directory, env: { XDG_DATA_HOME: join(app.directory, 'data') } }
    const listed = async () => JSON.parse((await runCli(['history', '--json'], cli)).stdout)
    await expect.poll(listed).toMatchObject([{ key: bucket.puts[0], expiresAt: expect.any(String) }])
    expect(await send(app.url, named(1, 'y'))).toMatchObject({ status: 429, code: 'quota_exceeded' })
  })

  it('that is used up refuses a request before its body, but not a repetition, which uses nothing', async () => {
    const app = await startApp({ config: config({ quota: { files: 1, per: '1d' } }) })
    const first = await send(app.url, { 'a.txt': 'a' }, { 'Idempotency-Key': 'one' })
    const { status, body } = await sendRaw(app.url, {
      headers: [
        'Content-Type: text/plain',
        'Content-Length: 15000000',
        'Expect: 100-continue',
        `X-Upload-Key: ${KEY}`,
      ],
    })
    expect(status).toBe(429)
    expect(JSON.parse(body.toString())).toMatchObject({ code: 'quota_exceeded' })
    const again = await send(app.url, { 'a.txt': 'a' }, { 'Idempotency-Key': 'one' })
    expect(again).toMatchObject({ status: 200, result: first.result })
  })

  it('counts for each person, and together with that of the key where both are asked for', async () => {
    const reverseProxy = {
      from: ['127.0.0.1'],
      preset: 'authelia',
      requireKey: true,
      quota: { files: 1, per: '1d' },
    }
    const { auth } = config({ quota: { files: 2, per: '1d' } })
    const app = await startApp({ config: { auth: { ...auth, reverseProxy } } })
    const by = async (user: string) =>
      (await send(app.url, { 'a.txt': `of ${user} ${randomUUID()}` }, { 'Remote-User': user })).status
    expect([await by('alice'), await by('alice'), await by('bob'), await by('carol')]).toEqual([
      200, 429, 200, 429,
    ])
  })
})

describe('the limits of a key', () => {
  it('types are told by the bytes, not by the name', async () => {
    const app = await startApp({ config: config({ types: ['image/*'] }) })
    const answer = await send(app.url, { 'a.png': 'text', 'b.txt': PNG })
    expect(answer).toMatchObject({ status: 415, code: 'type_forbidden' })
    expect(codes(answer)).toEqual(['type_forbidden'])
    expect(answer.message).toContain('"a.png" is text/plain by its bytes. This client may upload image/*.')
    expect(await app.files()).toEqual([expect.stringMatching(/b-[0-9a-f]{8}\.png$/)])
  })

  it('a picture with code in it was stored as a program of a web server', async () => {
    const types = ['image/*', 'text/plain', 'application/octet-stream']
    const app = await startApp({ config: config({ types }, { keyTemplate: '{filename}{extname}' }) })
    const gif = Buffer.from('GIF89a\x01\0\x01\0\0\0\0!<?php system($_GET[0]);', 'latin1')
    const svg = '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>'
    const programs = ['php', 'jsp', 'CGI', 'shtml', 'html', 'svgz', 'hta']
    const files = {
      ...Object.fromEntries(programs.map((extension, n) => [`${n}.${extension}`, gif])),
      'photo.GIF': gif,
      'text.php': 'GIF89a<?php',
      'bytes.php': Buffer.from('\x01<?php'),
      'drawing.html': svg,
      '.htaccess': PNG,
      'log.Log': 'text',
    }
    expect((await send(app.url, files)).items.map(({ fileName }) => fileName)).toEqual([
      ...programs.map((_, n) => `${n}.gif`),
      'photo.GIF',
      'text.txt',
      'bytes.bin',
      'drawing.svg',
      '_.htaccess.png',
      'log.Log',
    ])
  })

  it('fileSize holds for a form, a raw body and a data: URI', async () => {
    const app = await startApp({ config: config({ fileSize: '100B' }) })
    const headers = { 'X-Upload-Key': KEY }
    const long = 'a'.repeat(101)
    const list = [`data:text/plain;base64,${Buffer.from(long).toString('base64')}`]
    expect((await send(app.url, { 'a.txt': long })).status).toBe(413)
    expect((await ask(app.url, 'PUT', '/upload/a.txt', { headers, body: long })).status).toBe(413)
    const body = JSON.stringify({ list })
    expect((await ask(app.url, 'POST', '/upload', { headers, body })).status).toBe(413)
    expect((await send(app.url, { 'a.txt': 'a'.repeat(100) })).status).toBe(200)
  })

  it('fileSize and types hold for URLs and paths', async () => {
    const root = await makeDirectory()
    await writeFile(join(root, 'long.txt'), 'a'.repeat(101))
    await writeFile(join(root, 'short.txt'), 'a')
    const { origin } = await serve((req, res) => res.end('a'.repeat(req.url === '/long.txt' ? 101 : 1)))
    const sources = { url: { allowPrivate: true }, path: { roots: [root] } }
    const app = await startApp({ config: config({ fileSize: '100B', types: ['image/*'] }, { sources }) })
    for (const place of [origin, root]) {
      const list = [`${place}/long.txt`, `${place}/short.txt`]
      const { body } = await ask(app.url, 'POST', '/upload', {
        headers: { 'X-Upload-Key': KEY },
        body: JSON.stringify({ list }),
      })
      expect(codes(JSON.parse(body))).toEqual(['too_large', 'type_forbidden'])
      expect(body).toMatch(/larger than 100 bytes .* fileSize of the client.*is text.plain by its bytes/)
    }
    expect(await app.files()).toEqual([])
  })
})
