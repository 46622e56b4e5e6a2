import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished } from 'vitest'
import { expectFailure } from '../helpers/expect-answer.ts'
import { list, post } from '../helpers/form.ts'
import { sendRaw, sendUpload } from '../helpers/raw-request.ts'
import { startApp } from '../helpers/start-app.ts'

const HELLO = '{"list":["data:,hello"]}'
const inside = `POST /upload HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: ${HELLO.length}\r\n\r\n${HELLO}`

describe('attack: a request that two programs may read differently', () => {
  it.each<[what: string, headers: string[], body: string]>([
    ['a length and chunks', ['Content-Length: 4', 'Transfer-Encoding: chunked'], `0\r\n\r\n${inside}`],
    ['chunks that are not the last coding', ['Transfer-Encoding: chunked, identity'], `0\r\n\r\n${inside}`],
    ['a coding that is almost chunks', ['Transfer-Encoding: xchunked'], `0\r\n\r\n${inside}`],
    ['two lengths', ['Content-Length: 2', `Content-Length: ${inside.length + 2}`], `{}${inside}`],
    ['a length with a sign', ['Content-Length: +2'], `{}${inside}`],
    ['a length beyond all numbers', ['Content-Length: 99999999999999999999'], `{}${inside}`],
    ['a space before a colon', ['Content-Length : 2'], `{}${inside}`],
    ['a folded header', ['X-A: b\r\n c', 'Content-Length: 2'], `{}${inside}`],
    ['a chunk of endless size', ['Transfer-Encoding: chunked'], `FFFFFFFFFFFFFFFFF\r\n${inside}`],
    ['chunk extensions of 100 KB', ['Transfer-Encoding: chunked'], `1;${'a=b;'.repeat(25_000)}\r\n${inside}`],
  ])('%s', async (_, headers, body) => {
    const app = await startApp()
    const answer = await sendUpload(app.url, { headers, body })
    expectFailure(answer, 400, 'invalid_request')
    expect(answer.headers.get('connection')).toBe('close')
    expect(await app.files()).toEqual([])
  })

  it.each([[['Host: 127.0.0.1', 'Host: evil.example']], [['Host: evil.example', 'HOST: 127.0.0.1']]])(
    'two hosts: %j',
    async headers => {
      const app = await startApp()
      expectFailure(await sendUpload(app.url, { headers, body: HELLO }), 400, 'invalid_request')
      expect(await app.files()).toEqual([])
    },
  )
})

describe('attack: a whole address in the place of a path', () => {
  it.each<[line: string, status: number]>([
    ['GET http://[::1/heartbeat?key=s3cr3t-k3y HTTP/1.1', 200],
    ['GET ftp://[::1/nothing?key=s3cr3t-k3y HTTP/1.1', 404],
    ['POST http://evil.example/upload HTTP/1.1', 401],
    ['POST http://127.0.0.1@evil.example/upload HTTP/1.1', 401],
    ['POST http://[::1/upload HTTP/1.1', 401],
  ])('%s', async (line, status) => {
    const warnings: string[] = []
    const note = (warning: Error) => void warnings.push(warning.message)
    process.on('warning', note)
    onTestFinished(() => void process.off('warning', note))
    const app = await startApp()
    const answer = await sendRaw(app.url, { line, headers: ['Host: 127.0.0.1'], body: HELLO })
    expect([answer.status, answer.headers.get('content-type')]).toEqual([
      status,
      'application/json; charset=utf-8',
    ])
    await new Promise(setImmediate)
    // Node would print the address, with the key in it.
    expect(warnings.filter(one => one.includes('[::1'))).toEqual([])
    expect(app.rawLog()).not.toContain('s3cr3t-k3y')
  })
})

describe('attack: lists that are held back fill the memory', () => {
  const MB = 1024 * 1024
  const config = {
    server: { key: 's3cr3t-k3y' },
    limits: { memory: '2MB', jsonBody: '4MB', concurrentUploads: 1 },
  }

  /** A list that misses its last byte. */
  async function begin(url: string, bytes: number, type = 'application/json') {
    const headers = { 'Content-Length': bytes, 'Content-Type': type }
    const call = request(`${url}/upload`, { method: 'POST', agent: false, headers })
    onTestFinished(() => void call.destroy())
    const answered = once(call, 'response')
    answered.catch(() => {})
    await new Promise<void>(resolve => call.write(HELLO.padEnd(bytes - 1), () => resolve()))
    return {
      async finish() {
        call.end(' ')
        const [response] = (await answered) as [IncomingMessage]
        return { status: response.statusCode, ...JSON.parse(await text(response)) }
      },
    }
  }

  it.each(['application/json', 'image/png'])('%s: large ones wait, small ones go on', async type => {
    const app = await startApp({ config })
    const held = [await begin(app.url, 1.5 * MB), await begin(app.url, 0.25 * MB)]
    const tooMuch = await begin(app.url, MB, type)
    expect(await tooMuch.finish()).toMatchObject({ status: 503, code: 'overloaded' })
    expect((await post(`${app.url}/upload`, list('data:,hello'))).status).toBe(200)
    for (const one of held) expect(await one.finish()).toMatchObject({ status: 200 })
    // All of it is free again: also for one that is larger than the memory, as long as it is alone.
    for (let i = 0; i < 2; i++)
      expect(await (await begin(app.url, 3 * MB, type)).finish()).toMatchObject({ status: 200 })
  })

  it('a data: address with a million parameters is refused', async () => {
    const app = await startApp()
    const answer = await post(`${app.url}/upload`, list(`data:${';a=b'.repeat(1e6)},hello`))
    expectFailure(answer, 400, 'invalid_request')
  })
})
