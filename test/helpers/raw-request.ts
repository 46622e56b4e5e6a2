import { once } from 'node:events'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { expectDescribed } from './contract.ts'
import type { Answer } from './form.ts'

/** A request as it goes over the wire. */
export interface RawRequest {
  /** Default: `POST /upload HTTP/1.1`. */
  line?: string
  /** Header lines as the client spells them. `Host` is added in front, and `Content-Length` behind, when they are missing. */
  headers?: readonly string[]
  /** Left out: no body and no length. */
  body?: string | Uint8Array
  /** Whether a proxy makes another operation of it, so that its answer is not that of its target. */
  isRewritten?: boolean
}

export interface RawAnswer {
  status: number
  headers: Headers
  body: Buffer
}

/** Sends exactly these bytes on a connection of its own, which trusts every certificate, and reads one answer. */
export async function sendRaw(url: string, request: RawRequest): Promise<RawAnswer> {
  const { protocol, hostname, port, host } = new URL(url)
  const socket =
    protocol === 'https:'
      ? connectTls({ port: Number(port), host: hostname, rejectUnauthorized: false })
      : connect(Number(port), hostname)
  socket.on('error', () => {}) // the server may answer and hang up before it has read everything
  socket.write(toBytes(host, request))
  const hasBody = !request.line?.startsWith('HEAD ')
  let received = Buffer.alloc(0)
  socket.on('data', chunk => {
    received = Buffer.concat([received, chunk])
    if (parseAnswer(received, hasBody)) socket.destroy()
  })
  await once(socket, 'close')
  const answer = parseAnswer(received, hasBody)
  if (!answer) throw new Error(`No complete answer: ${JSON.stringify(received.toString())}`)
  const [method = '', target = ''] = (request.line ?? 'POST /upload').split(' ')
  const contentType = answer.headers.get('content-type')
  // A proxy in between has answers of its own.
  if (answer.headers.has('x-request-id') && !request.isRewritten)
    expectDescribed({
      method,
      target,
      status: answer.status,
      contentType,
      body: answer.body.toString('utf8'),
    })
  return answer
}

/** As `sendRaw`, for answers that must be the JSON of POST /upload: never empty, no byte order mark. */
export async function sendUpload(url: string, request: RawRequest = {}): Promise<Answer> {
  const { status, headers, body } = await sendRaw(url, request)
  return { status, headers, ...readJson(headers, body) }
}

function readJson(headers: Headers, body: Buffer): Omit<Answer, 'status' | 'headers'> {
  const type = headers.get('content-type') ?? ''
  if (!/^application\/json(;|$)/.test(type) || body[0] !== 0x7b)
    throw new Error(`No JSON: ${type}, ${body.toString('latin1').slice(0, 200)}`)
  return JSON.parse(body.toString())
}

/** Header lines (with plain line feeds when they are text) and content. */
export type RawPart = readonly [head: string | Uint8Array, bytes: string | Uint8Array]

/** A multipart body. `end` is what stands behind the last boundary; some clients leave it out. */
export function formBody(boundary: string, parts: readonly RawPart[], end = '\r\n'): Buffer {
  const pieces = parts.flatMap(([head, bytes]) => [
    Buffer.from(`--${boundary}\r\n`),
    Buffer.from(typeof head === 'string' ? head.replaceAll('\n', '\r\n') : head),
    Buffer.from('\r\n\r\n'),
    Buffer.from(bytes),
    Buffer.from('\r\n'),
  ])
  return Buffer.concat([...pieces, Buffer.from(`--${boundary}--${end}`)])
}

function toBytes(host: string, { line = 'POST /upload HTTP/1.1', headers = [], body }: RawRequest): Buffer {
  const has = (name: RegExp) => headers.some(header => name.test(header))
  const lines = [line, ...(has(/^host:/i) ? [] : [`Host: ${host}`]), ...headers]
  if (body !== undefined && !has(/^(content-length|transfer-encoding):/i))
    lines.push(`Content-Length: ${Buffer.byteLength(body)}`)
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), Buffer.from(body ?? '')])
}

/** The first final answer in these bytes, undefined while it is incomplete. */
function parseAnswer(bytes: Buffer, hasBody: boolean): RawAnswer | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const status = Number(statusLine.split(' ')[1])
  const rest = bytes.subarray(end + 4)
  if (status < 200) return parseAnswer(rest, hasBody)
  const headers = new Headers(
    lines.map((line): [string, string] => [
      line.slice(0, line.indexOf(':')),
      line.slice(line.indexOf(':') + 1).trim(),
    ]),
  )
  const length = status === 204 || !hasBody ? 0 : Number(headers.get('content-length') ?? Number.NaN)
  return rest.length >= length ? { status, headers, body: rest.subarray(0, length) } : undefined
}
