import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { eventually } from './helpers/eventually.ts'
import { expectFailure } from './helpers/expect-answer.ts'
import { download, formOf, list, post, upload } from './helpers/form.ts'
import { startGate } from './helpers/gate.ts'
import { formBody, sendUpload } from './helpers/raw-request.ts'
import { shareApp, startApp, type TestApp } from './helpers/start-app.ts'
import { startStubBucket } from './helpers/stub-bucket.ts'

const MB = 1024 * 1024
const KEY = 'k3y-0f-the-server'
const FORM_TYPE = 'Content-Type: multipart/form-data; boundary=b'
const part = (name: string) => `Content-Disposition: form-data; name="file"; filename="${name}"`

/** A server with these limits that stores in a folder of its own. */
function startLimited(limits: Record<string, unknown>, more: Record<string, unknown> = {}): Promise<TestApp> {
  return startApp({ config: { limits, ...more } })
}

/** Files that were uploaded, or are on their way. */
async function uploadedFiles(app: TestApp): Promise<string[]> {
  return (await app.files()).filter(path => /(?:^|\/)(?:files|tmp|\.upload-server)\//.test(path))
}

/** Opens a connection and sends the head of an upload on it, and as much of its body as is given. */
function beginUpload(
  app: { url: string },
  headers: readonly string[],
  body: string | Uint8Array = '',
): Socket {
  const { hostname, port, host } = new URL(app.url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {}) // the server hangs up on whoever is too slow
  socket.write(`POST /upload HTTP/1.1\r\n${[`Host: ${host}`, ...headers].join('\r\n')}\r\n\r\n`)
  socket.write(body)
  onTestFinished(() => void socket.destroy())
  return socket
}

describe('limits.fileSize', () => {
  it('fails the files that are larger, exactly, and stores the others of the form', async () => {
    const app = await startLimited({ fileSize: '1000B', files: 10 })
    const answer = await upload(`${app.url}/upload`, {
      'fits.bin': randomBytes(1000),
      'large.bin': randomBytes(1001),
      'small.bin': randomBytes(1),
      'huge.bin': randomBytes(3_000_000),
    })
    expectFailure(answer, 413, 'too_large')
    expect(answer.items.map(item => item.origin)).toEqual(['fits.bin', 'small.bin'])
    expect(answer.errors).toMatchObject([
      { index: 1, origin: 'large.bin', code: 'too_large', message: expect.stringContaining('large.bin') },
      { index: 3, origin: 'huge.bin', code: 'too_large' },
    ])
    expect(await uploadedFiles(app)).toHaveLength(2)
  })
})

it.for(['form', 'list'])('limits.files refuses a %s with one more, and stores nothing of it', async kind => {
  const app = await startLimited({ files: 3 })
  const files = Object.fromEntries([0, 1, 2, 3].map(i => [`${i}.bin`, randomBytes(2_000_000)]))
  const entries = Object.keys(files).map(name => join(app.directory, name))
  const answer = await post(`${app.url}/upload`, kind === 'form' ? { body: formOf(files) } : list(...entries))
  expectFailure(answer, 413, 'too_large')
  expect(answer.message).toContain('limits.files')
  expect(answer).not.toHaveProperty('result')
  await eventually(async () => expect(await uploadedFiles(app)).toEqual([]))
})

it('limits.jsonBody refuses more bytes than that, sent with a length or in chunks, and lets exactly so many through', async () => {
  const app = await startLimited({ jsonBody: '1000B' })
  const json = JSON.stringify({ list: ['data:,hello'] }).padEnd(1000)
  expect(await sendUpload(app.url, { body: json })).toMatchObject({ status: 200, items: [{ size: 5 }] })
  const chunk = `${(1001).toString(16)}\r\n${json} \r\n0\r\n\r\n`
  for (const [headers, body] of [
    [[], `${json} `],
    [['Transfer-Encoding: chunked'], chunk],
    [['Content-Type: application/octet-stream'], `${json} `],
  ] as const) {
    const answer = await sendUpload(app.url, { headers, body })
    expectFailure(answer, 413, 'too_large')
    expect(answer.message).toContain('limits.jsonBody')
  }
})

/** A destination, or a server that files come from, which answers when it is told to. */
async function startSlow(kind: 'files' | 'addresses', perDestination: object) {
  const [bucket, gate] = [await startStubBucket(), await startGate()]
  bucket.hold()
  const providers = { s3: { b: bucket.options }, local: { l: { directory: 'l', serve: true } } }
  const home = kind === 'files' ? 's3/b' : 'local/l'
  const app = await startLimited({ perDestination }, { providers, default: home })
  let count = 0
  return {
    app,
    send: (signal?: AbortSignal) =>
      post(`${app.url}/upload`, {
        ...(kind === 'files' ? { body: formOf({ [`${++count}.txt`]: `file ${count}` }) } : list(gate.url)),
        ...(signal && { signal }),
      }),
    reached: (count: number) =>
      kind === 'files'
        ? expect.poll(() => bucket.puts.length).toBeGreaterThanOrEqual(count)
        : gate.reached(count),
    open() {
      bucket.letGo()
      gate.open()
    },
  }
}

describe.each(['files', 'addresses'] as const)('limits.perDestination.concurrent and queued for %s', kind => {
  it('turn away at once what finds no place, with Retry-After, and finish the rest; other destinations, and files, go on', async () => {
    const { app, send, reached, open } = await startSlow(kind, { concurrent: 2, queued: 0 })
    const running = [1, 2].map(() => send())
    await reached(2)
    const refused = await send()
    expectFailure(refused, 503, 'overloaded')
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    for (const content of ['one', 'two', 'three'])
      expect(await upload(`${app.url}/upload?configName=l`, { 'a.txt': content })).toMatchObject({
        status: 200,
      })
    open()
    for (const answer of await Promise.all(running)) expect(answer).toMatchObject({ status: 200 })
    expect(await send()).toMatchObject({ status: 200 })
  })

  it('give back the place of a client that went away, waiting or not', async () => {
    const { send, reached, open } = await startSlow(kind, { concurrent: 1, queued: 1 })
    const leave = new AbortController()
    const gone = send(leave.signal)
    await reached(1)
    const alsoGone = send(leave.signal)
    const later = () => new Promise<undefined>(resolve => setTimeout(resolve, 1000, undefined))
    await eventually(async () =>
      expect(await Promise.race([send(leave.signal), later()])).toMatchObject({ status: 503 }),
    )
    leave.abort()
    await Promise.allSettled([gone, alsoGone])
    open()
    await eventually(async () => expect(await send()).toMatchObject({ status: 200 }))
  })
})

describe('a body that stops arriving', () => {
  const impatient = shareApp({ config: { limits: { bodyIdle: '150ms' } } })

  it.for<[string, string[], string]>([
    ['before its first byte', ['Content-Length: 100'], ''],
    ['inside JSON', ['Content-Length: 100'], '{"list":['],
    ['between chunks', ['Transfer-Encoding: chunked'], '5\r\n{"lis\r\n'],
    ['before a form begins', [FORM_TYPE, 'Content-Length: 100000'], ''],
    ['inside the header of a part', [FORM_TYPE, 'Content-Length: 100000'], '--b\r\nContent-Dispo'],
    ['inside a small file', [FORM_TYPE, 'Content-Length: 100000'], `--b\r\n${part('a.txt')}\r\n\r\nhello`],
    [
      'inside a file on disk',
      [FORM_TYPE, 'Content-Length: 9000000'],
      `--b\r\n${part('a.txt')}\r\n\r\n${'x'.repeat(3 * MB)}`,
    ],
    [
      'behind the last file',
      [FORM_TYPE, 'Content-Length: 100000'],
      `--b\r\n${part('a.txt')}\r\n\r\nhello\r\n--b--\r\n`,
    ],
  ])('%s gets 408', async ([, headers, body]) => {
    const app = impatient()
    const answer = await text(beginUpload(app, headers, body))
    expect(answer).toMatch(/^HTTP\/1\.1 408 /)
    expect(answer).toMatch(/\r\nConnection: close\r\n/)
    expect(JSON.parse(answer.split('\r\n\r\n')[1]!)).toMatchObject({ code: 'request_timeout' })
    await eventually(async () => expect(await uploadedFiles(app)).toEqual([]))
  })

  it('is not what a slow but steady client sends', async () => {
    const app = await startLimited({ bodyIdle: '300ms' })
    const body = formBody('b', [[part('a.bin'), Buffer.alloc(30_000, 'x')]])
    const socket = beginUpload(app, [FORM_TYPE, `Content-Length: ${body.length}`, 'Connection: close'])
    for (let sent = 0; sent < body.length; sent += 2000) {
      socket.write(body.subarray(sent, sent + 2000))
      await sleep(30)
    }
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 200 /)
  })
})

it('100 clients that send one byte now and then do not keep others out, and get 408', async () => {
  const app = await startLimited({ bodyIdle: '2000ms', perDestination: { concurrent: 4, queued: 4 } })
  const slow = Array.from({ length: 100 }, (_, i) => {
    const { hostname, port } = new URL(app.url)
    if (i % 2) return beginUpload(app, [FORM_TYPE, 'Content-Length: 100000'], '-')
    // This half never gets to the end of its headers.
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {})
    socket.write('POST /upload HTTP/1.1\r\nX-')
    return socket
  })
  await Promise.all(slow.filter(socket => socket.connecting).map(socket => once(socket, 'connect')))
  const drip = setInterval(() => {
    for (const socket of slow) socket.write('x')
  }, 250)
  onTestFinished(() => {
    clearInterval(drip)
    for (const socket of slow) socket.destroy()
  })

  for (let round = 0; round < 10; round++) {
    const bytes = randomBytes(100_000)
    const answer = await upload(`${app.url}/upload`, { 'a.bin': bytes })
    expect((await download(answer.result[0]!)).equals(bytes)).toBe(true)
  }

  const ends = slow.filter((_, i) => i % 2).map(socket => text(socket))
  for (const answer of await Promise.all(ends)) expect(answer).toMatch(/^HTTP\/1\.1 408 /)
})

describe('a client that goes away half-way leaves nothing behind:', () => {
  const pieces = (bytes: number) => `--b\r\n${part('a.bin')}\r\n\r\n${'x'.repeat(bytes / 2)}`

  it.for<[string, string[], string, boolean]>([
    ['a form of 5 MB', [FORM_TYPE, `Content-Length: ${5 * MB}`], pieces(5 * MB), true],
    ['a form of 300 KB', [FORM_TYPE, 'Content-Length: 300000'], pieces(300_000), false],
    ['a chunked form', [FORM_TYPE, 'Transfer-Encoding: chunked'], `500000\r\n${pieces(5 * MB)}`, true],
    [
      'a form whose first file is complete',
      [FORM_TYPE, 'Content-Length: 99999'],
      `--b\r\n${part('a')}\r\n\r\nx\r\n--b\r\n`,
      false,
    ],
    ['a file', ['Content-Type: image/png', `Content-Length: ${5 * MB}`], 'x'.repeat(3 * MB), true],
    ['JSON', ['Content-Length: 300'], '{"list":["/etc/host', false],
    ['a body of which nothing came', ['Content-Length: 300'], '', false],
  ])('%s', async ([, headers, body, onDisk]) => {
    const app = await startApp()
    const socket = beginUpload(app, [...headers, 'Expect: 100-continue'], body)
    await once(socket, 'data') // the server has begun to read
    if (onDisk) await eventually(async () => expect(await uploadedFiles(app)).toHaveLength(1))
    socket.destroy()
    await eventually(() =>
      expect(app.log).toContainEqual(expect.objectContaining({ msg: 'client disconnected' })),
    )
    await eventually(async () => expect(await uploadedFiles(app)).toEqual([]))
    expect(app.log.filter(entry => entry['level'] === 'error')).toEqual([])
  })
})

// As Python's urllib does, whatever the server says meanwhile.
it.for(['HTTP/1.1 close', 'HTTP/1.1 keep-alive', 'HTTP/1.0 close'])(
  'an answer that comes before the body of 20 MB can be read by a client that reads only when it has sent everything: %s',
  async how => {
    const [version, connection] = how.split(' ')
    const body = Buffer.alloc(20 * MB, 'x')
    const app = await startApp({ config: { server: { key: KEY } } })
    for (const path of ['/upload', '/heartbeat', '/nowhere']) {
      const { hostname, port } = new URL(app.url)
      const socket = connect(Number(port), hostname).pause()
      const head = [`POST ${path} ${version}`, 'Host: localhost', 'Via: 1.1 x', `Connection: ${connection}`]
      socket.write(`${head.join('\r\n')}\r\nContent-Length: ${body.length}\r\n\r\n`)
      await new Promise<void>((resolve, reject) =>
        socket.write(body, error => (error ? reject(error) : resolve())),
      )
      socket.resume()
      const [answer] = (await once(socket, 'data')) as [Buffer]
      expect(answer.toString()).toMatch(/^HTTP\/1\.1 (401|200|404) .*\r\n\r\n\{"success":.*\}$/s)
      socket.destroy()
    }
  },
)
