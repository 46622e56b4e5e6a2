import { createHash } from 'node:crypto'
import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttps } from 'node:https'
import { onTestFinished } from 'vitest'
import { type Listening, listen } from './listen.ts'

/** A request as it arrived. */
export interface Played {
  readonly method: string
  /** Path and query as they were sent. */
  readonly url: string
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  readonly size: number
  /** Of the body, hex. */
  readonly sha256: string
  /** Its first megabyte, at least. */
  readonly text: string
}

export interface Answer {
  /** The connection is broken instead when it is 0. */
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** Text, or what is sent as JSON. */
  readonly body?: unknown
}

export interface Player extends Listening {
  /** What arrived, in order. */
  readonly requests: readonly Played[]
  /** Its methods and URLs, such as `PUT /a.png`. */
  lines(): string[]
}

const MAX_TEXT_BYTES = 1024 * 1024

/** One answer to everything, one to each request in order, or one that depends on the request. */
type Answers = Answer | Answer[] | ((request: Played, index: number) => Answer | Promise<Answer>)

/** A server on 127.0.0.1 that answers as some other server has, or documents that it does; with TLS when it has a key. */
export async function startPlayer(answers: Answers, tls?: { key: string; cert: string }): Promise<Player> {
  const requests: Played[] = []
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const played = await read(request).catch(() => undefined)
    if (!played) return // the client went away
    const index = requests.push(played) - 1
    const answer =
      typeof answers === 'function'
        ? await answers(played, index)
        : [answers].flat()[Array.isArray(answers) ? index : 0]
    const { status, headers, body = '' } = answer ?? { status: 500, body: 'nothing is played any more' }
    if (status === 0) return void response.destroy()
    if (typeof body === 'string') response.writeHead(status, headers).end(body)
    else
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
  }
  const server = await listen(tls ? createHttps(tls, handle) : createHttp(handle))
  return { ...server, requests, lines: () => requests.map(({ method, url }) => `${method} ${url}`) }
}

/** The same until the end of the test. */
export async function play(answers: Answers): Promise<Player> {
  const player = await startPlayer(answers)
  onTestFinished(player.close)
  return player
}

async function read(request: IncomingMessage): Promise<Played> {
  const hash = createHash('sha256')
  const head: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    hash.update(chunk)
    if (size < MAX_TEXT_BYTES) head.push(chunk)
    size += chunk.length
  }
  const { method = '', url = '' } = request
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
  )
  return { method, url, headers, size, sha256: hash.digest('hex'), text: Buffer.concat(head).toString() }
}
