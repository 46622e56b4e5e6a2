import { createHash } from 'node:crypto'
import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttps } from 'node:https'
import { listen } from './listen.ts'

export interface Recorded {
  readonly method: string
  /** Path and query as they were sent. */
  readonly url: string
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  readonly size: number
  /** Of the body, hex. */
  readonly sha256: string
  readonly text: string
}

export interface Recorder {
  readonly port: number
  readonly requests: readonly Recorded[]
  close(): Promise<void>
}

export interface Answer {
  readonly status: number
  readonly headers?: Record<string, string>
  readonly body?: string
}

/**
 * A server on 127.0.0.1 that remembers what it was asked, with TLS when it has a key.
 *
 * @param answer what to say to the request, after its body has arrived
 */
export async function startRecorder(
  answer: (request: Recorded, index: number) => Answer | Promise<Answer>,
  tls?: { key: string; cert: string },
): Promise<Recorder> {
  const requests: Recorded[] = []
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const recorded = await record(request).catch(() => undefined)
    if (!recorded) return
    requests.push(recorded)
    const { status, headers, body } = await answer(recorded, requests.length - 1)
    response.writeHead(status, headers).end(body)
  }
  const server = tls ? createHttps(tls, handle) : createHttp(handle)
  return { ...(await listen(server)), requests }
}

async function record(request: IncomingMessage): Promise<Recorded> {
  const hash = createHash('sha256')
  const head: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    hash.update(chunk)
    if (size < 10_000) head.push(chunk)
    size += chunk.length
  }
  const { method = '', url = '' } = request
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
  )
  return { method, url, headers, size, sha256: hash.digest('hex'), text: Buffer.concat(head).toString() }
}
