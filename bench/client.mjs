/**
 * Sends one load after the other to a server and checks every answer: the second process of the benchmark, started by
 * run.mjs, which tells it over IPC what to do. Raw sockets with keep-alive and a prebuilt body: it must cost little
 * beside the server.
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { get, request } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * @typedef {object} Load
 * @property {string} url of the server
 * @property {'upload' | 'list' | 'heartbeat'} kind
 * @property {number} clients connections, each with one request at a time
 * @property {number} [size] of a file, bytes
 * @property {number} [files] of a form; default 1
 * @property {number} [pieces] of a body, which a slow client sends one by one
 * @property {number} [pauseMs] before each of them; the clients begin one after the other within the time of one body
 * @property {string[]} [paths] of a list
 * @property {number} [ms] how long new requests are begun
 * @property {number} [requests] of each client, in place of `ms`
 * @property {boolean} [wholeBody] whether the server stores the body unparsed
 * @property {'one' | 'all'} verify which of the stored files are fetched back afterwards
 * @property {boolean} [sizeOnly] whether only their size is asked for
 * @property {string} [key] upload key
 * @property {boolean} [keyed] whether every upload has an Idempotency-Key of its own
 */

const BOUNDARY = 'BenchBoundary7MA4YWxkTrZu0gW'
const TAIL = Buffer.from(`\r\n--${BOUNDARY}--\r\n`)
const COUNTER_DIGITS = 12
/** What stands before the first pixel of a PNG of 1024 × 1024. */
const PNG_START = Buffer.from(
  '89504e470d0a1a0a0000000d49484452000004000000040008060000000000000000ffffff49444154',
  'hex',
)

let counter = 0
/** Bytes that no compression and no parser finds anything in, by their count. @type {Map<number, Buffer>} */
const noise = new Map()

function noiseOf(size) {
  const bytes = noise.get(size) ?? randomBytes(size)
  noise.set(size, bytes)
  return bytes
}

/**
 * A request as buffers that go out together, and the hash of what must be stored. Every file is another one.
 *
 * @param {Load} load
 */
function buildRequest({ url, kind, size = 0, files = 1, paths, wholeBody, key, keyed }) {
  const host = new URL(url).host
  if (kind === 'heartbeat')
    return { buffers: [Buffer.from(`GET /heartbeat HTTP/1.1\r\nHost: ${host}\r\n\r\n`)] }
  const head = (type, length) =>
    `POST /upload HTTP/1.1\r\nHost: ${host}\r\nContent-Type: ${type}\r\n` +
    (key ? `X-Upload-Key: ${key}\r\n` : '') +
    (keyed ? `Idempotency-Key: ${randomUUID()}\r\n` : '') +
    `Content-Length: ${length}\r\n\r\n`
  if (kind === 'list') {
    const body = JSON.stringify({ list: paths })
    return { buffers: [Buffer.from(head('application/json', body.length) + body)] }
  }
  const parts = Array.from({ length: files }, (_, index) => buildPart(size, index))
  const body = [...parts.flatMap(({ head, stored }) => [head, ...stored]), TAIL]
  const headers = Buffer.from(head(`multipart/form-data; boundary=${BOUNDARY}`, lengthOf(body)))
  return { buffers: join([headers, ...body]), stored: wholeBody ? body : parts[0].stored }
}

function buildPart(size, index) {
  const number = String(++counter).padStart(COUNTER_DIGITS, '0')
  const head = Buffer.from(
    `${index === 0 ? '' : '\r\n'}--${BOUNDARY}\r\nContent-Disposition: form-data; name="files"; ` +
      `filename="bench-${number}.png"\r\nContent-Type: image/png\r\n\r\n`,
  )
  const start = Buffer.concat([PNG_START, Buffer.from(number)])
  return { head, stored: [start, noiseOf(size - start.length)] }
}

const lengthOf = buffers => buffers.reduce((sum, { length }) => sum + length, 0)

/** As few buffers as can be without copying the large ones. */
function join(buffers) {
  const joined = []
  let small = []
  for (const buffer of buffers) {
    if (buffer.length < 1024) small.push(buffer)
    else {
      joined.push(...(small.length > 0 ? [Buffer.concat(small)] : []), buffer)
      small = []
    }
  }
  return small.length > 0 ? [...joined, Buffer.concat(small)] : joined
}

/** @returns {Buffer[]} about as many pieces of the same size */
function cut(buffers, pieces) {
  const all = Buffer.concat(buffers)
  const size = Math.ceil(all.length / pieces)
  return Array.from({ length: Math.ceil(all.length / size) }, (_, n) =>
    all.subarray(n * size, (n + 1) * size),
  )
}

/** The body of PicList's responses. */
function readChunks(text) {
  const end = text.indexOf('\r\n')
  const length = Number.parseInt(text.slice(0, end), 16)
  return length === 0 ? '' : text.slice(end + 2, end + 2 + length) + readChunks(text.slice(end + 4 + length))
}

/** One connection. */
class Client {
  constructor(url) {
    const { hostname, port } = new URL(url)
    this.socket = connect(Number(port), hostname)
    this.socket.setNoDelay(true)
    this.received = ''
    this.socket.on('data', chunk => this.take(chunk.toString('latin1')))
    this.socket.on('error', error => this.end(error))
    this.socket.on('close', () => this.end(new Error('connection closed')))
  }

  end(error) {
    this.error ??= error
    this.reject?.(this.error)
  }

  take(text) {
    this.received += text
    const headEnd = this.received.indexOf('\r\n\r\n')
    if (headEnd === -1) return
    if (/\r\ntransfer-encoding: *chunked/i.test(this.received.slice(0, headEnd))) {
      if (this.received.endsWith('\r\n0\r\n\r\n')) this.give(readChunks(this.received.slice(headEnd + 4)))
      return
    }
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(this.received.slice(0, headEnd))?.[1])
    if (!(this.received.length >= headEnd + 4 + length)) return
    this.give(this.received.slice(headEnd + 4))
  }

  give(body) {
    const answer = { status: Number(this.received.slice(9, 12)), body }
    this.received = ''
    this.resolve(answer)
  }

  /** @returns {Promise<{ status: number, body: string }>} */
  send(buffers, { pieces, pauseMs }) {
    return new Promise((resolve, reject) => {
      if (this.error) reject(this.error)
      Object.assign(this, { resolve, reject })
      if (pieces) void this.sendSlowly(cut(buffers, pieces), pauseMs)
      else {
        this.socket.cork()
        for (const buffer of buffers) this.socket.write(buffer)
        this.socket.uncork()
      }
    })
  }

  async sendSlowly(pieces, pauseMs) {
    for (const piece of pieces) {
      await sleep(pauseMs)
      this.socket.write(piece)
    }
  }
}

/** @returns {string[]} the links of an answer @throws when it is not the right one */
function check({ status, body }, { kind, paths, files = 1, wholeBody }) {
  const { success, result } = JSON.parse(body)
  const isRight =
    kind === 'heartbeat'
      ? result === 'alive'
      : Array.isArray(result) && result.length === (paths?.length ?? (wholeBody ? 1 : files))
  if (status !== 200 || success !== true || !isRight) throw new Error(`${status} ${body.slice(0, 200)}`)
  return kind === 'heartbeat' ? [] : result
}

function hashOf(buffers) {
  const hash = createHash('sha256')
  for (const buffer of buffers) hash.update(buffer)
  return hash.digest('hex')
}

/** @returns {Promise<string>} hash of what is under an address */
function fetchHash(url) {
  return new Promise((resolve, reject) => {
    get(url, res => {
      const hash = createHash('sha256')
      res.on('data', chunk => hash.update(chunk))
      res.on('end', () => resolve(hash.digest('hex')))
      res.on('error', reject)
    }).on('error', reject)
  })
}

/** @returns {Promise<number>} bytes under an address */
function fetchSize(url) {
  return new Promise((resolve, reject) => {
    const asked = request(url, { method: 'HEAD' }, res => {
      res.resume()
      resolve(res.statusCode === 200 ? Number(res.headers['content-length']) : -1)
    })
    asked.on('error', reject).end()
  })
}

async function isStored(link, stored, sizeOnly) {
  if (!sizeOnly) return (await fetchHash(link)) === hashOf(stored)
  return (await fetchSize(link)) === lengthOf(stored)
}

/**
 * @param {Load} load
 * @returns what came of it; `failures` holds a sentence for everything that was not right
 */
async function run(load) {
  const { url, clients, ms = Number.POSITIVE_INFINITY, requests = Number.POSITIVE_INFINITY, verify } = load
  const latencies = []
  const failures = []
  const kept = []
  const start = performance.now()
  const drive = async (_, index) => {
    if (load.pieces) await sleep((index / clients) * load.pieces * load.pauseMs)
    const client = new Client(url)
    for (let sent = 0; sent < requests && performance.now() - start < ms; sent++) {
      const { buffers, stored } = buildRequest(load)
      const began = performance.now()
      try {
        const links = check(await client.send(buffers, load), load)
        latencies.push(performance.now() - began)
        if (stored && (verify === 'all' || sent === 0)) kept.push({ link: links[0], stored })
      } catch (error) {
        failures.push(error.message)
        if (client.error) break
      }
    }
    client.socket.destroy()
  }
  await Promise.all(Array.from({ length: clients }, drive))
  const seconds = (performance.now() - start) / 1000
  for (const { link, stored } of kept.slice(0, verify === 'one' ? 1 : kept.length)) {
    if (!(await isStored(link, stored, load.sizeOnly))) failures.push(`other bytes under ${link}`)
  }
  latencies.sort((a, b) => a - b)
  const quantile = q => latencies[Math.min(Math.floor(latencies.length * q), latencies.length - 1)]
  return { done: latencies.length, seconds, failures, p50: quantile(0.5), p99: quantile(0.99) }
}

process.on('message', load => {
  run(load).then(
    result => process.send(result),
    error => process.send({ done: 0, seconds: 0, failures: [error.message] }),
  )
})
