import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { http } from '../../../src/providers/http/index.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { needsAll } from '../../helpers/needs.ts'
import { objectOf } from '../../helpers/provider-contract.ts'
import { never, type Options, open as openTarget } from '../../helpers/target.ts'
import { type EchoServer, HTTPBIN_NEEDS, PHP_NEEDS, startHttpbin, startPhp } from '../../servers/echo.ts'
import { serve } from '../../uploader/sources/servers.ts'

const BYTES = Buffer.from('the bytes of a picture')
const PICTURE = objectOf('2026/a b/pic ture.png', BYTES, 'image/png')
const SHA256 = createHash('sha256').update(BYTES).digest('hex')

const open = (options: Options) => openTarget(http, options)

describe('what http sends', () => {
  const names = ['plain.png', 'über 日本語 😀.png', 'a"b.png', "it's (1) [2] {3}%22 &.png", 'no extension']

  let servers: Promise<[EchoServer, EchoServer]> | undefined
  afterAll(async () => {
    for (const server of (await servers) ?? []) await server.stop()
  })

  it.for(names)('is read by PHP and by werkzeug: a file called %s', async (name, context) => {
    needsAll(context, [...PHP_NEEDS, ...HTTPBIN_NEEDS])
    servers ??= Promise.all([startPhp(), startHttpbin()])
    const [php, httpbin] = await servers
    const object = objectOf(`x/${name}`, BYTES, 'image/png')
    const options = {
      field: 'file',
      fields: {
        title: '{filename} {key}',
        'a "b"': 'line 1\nline 2',
        type: '{contentType}',
        sum: '{sha256}',
      },
      query: { name: '{filename}', size: '{size}' },
      headers: { 'X-Name': '{filename}' },
    }
    const fields = { title: `${name} x/${name}`, type: 'image/png', sum: SHA256 }
    const query = { name, size: String(BYTES.length) }
    const header = name.replace(/[^\x20-\x7e]+/g, encodeURIComponent)

    const seen = await echo({ ...options, url: php.url, resultUrl: 'url' }, object)
    expect(seen).toMatchObject({ method: 'POST', query, fields })
    expect(seen['fields']).toMatchObject({ 'a_%22b%22': 'line 1\r\nline 2' })
    expect(seen['files']).toMatchObject({
      file: { name: name.replaceAll('"', '%22'), type: 'image/png', sha256: SHA256, size: BYTES.length },
    })
    expect(seen['headers']).toMatchObject({ 'x-name': header, 'user-agent': 'upload-server' })

    const other = await echo({ ...options, url: httpbin.url, resultUrl: 'url' }, object)
    expect(other).toMatchObject({
      args: query,
      form: { ...fields, 'a %22b%22': 'line 1\r\nline 2' },
      headers: { 'X-Name': header },
    })
    expect(JSON.stringify(other['files'])).toContain(BYTES.toString())
  })

  /** What a server says it has understood, caught on its way back. */
  async function echo({ url, ...options }: Options, object = PICTURE): Promise<Record<string, unknown>> {
    let answer = ''
    const { origin } = await serve((incoming, response) => {
      const { method, headers } = incoming
      const outgoing = request(new URL(incoming.url ?? '', String(url)), { method, headers }, reply => {
        reply.setEncoding('utf8').on('data', text => {
          answer += text
        })
        reply.pipe(response)
      })
      incoming.pipe(outgoing)
    })
    const target = await open({ ...options, url: origin + new URL(String(url)).pathname })
    await target.put(object, never())
    return JSON.parse(answer)
  }

  it('as raw is the file alone, with its type and its length', async context => {
    needsAll(context, PHP_NEEDS)
    const php = await startPhp()
    onTestFinished(php.stop)
    const options = { url: php.url, method: 'PUT', body: 'raw', resultUrl: 'url' }
    const seen = await echo({ ...options, headers: { 'Content-Type': 'text/{size}' } })
    expect(seen).toMatchObject({
      method: 'PUT',
      body: SHA256,
      headers: { 'content-type': `text/${BYTES.length}` },
    })
    const plain = await echo(options)
    expect(plain['headers']).toMatchObject({ 'content-type': 'image/png' })
  })
})

describe('http with a file of ShareX', () => {
  it('sends what it says and finds what it names', async context => {
    needsAll(context, HTTPBIN_NEEDS)
    const httpbin = await startHttpbin()
    onTestFinished(httpbin.stop)
    const text = readFileSync(new URL('../../fixtures/sxcu/now.sxcu', import.meta.url), 'utf8')
    const sxcu = join(await makeDirectory(), 'now.sxcu')
    await writeFile(sxcu, JSON.stringify({ ...JSON.parse(text), RequestURL: httpbin.url }))
    const target = await open({ sxcu })
    const { url, deleteUrl } = await target.put(PICTURE, never())
    expect(url).toBe(`${httpbin.url}?year=${new Date().getFullYear()}&name=pic+ture.png?d=a`)
    expect(deleteUrl).toBe(`${httpbin.url}?year=${new Date().getFullYear()}&name=pic+ture.png/delete`)
  })
})
