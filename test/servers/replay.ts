import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { listen } from '../helpers/listen.ts'

/** A host that takes what a vendor documents and nothing else. */
export interface Replay {
  readonly port: number
  readonly url: string
  /** Lets it play a documented exchange, and gives the address below which it does. */
  replay(exchange: Played): Promise<string>
  close(): Promise<void>
}

/** A value, or an expression of one that differs each time. */
type Wanted = string | { readonly like: string }

export interface Reply {
  readonly status: number
  /** `{{url}}` is where the file is handed out, `{{id}}` what it is called there, `{{base}}` the server. */
  readonly body: unknown
}

/** What a vendor documents of its API. */
export interface Exchange {
  /** Where it is documented. */
  readonly source: readonly string[]
  readonly request: {
    readonly method: string
    readonly path: string
    readonly query?: Record<string, Wanted>
    readonly headers?: Record<string, string>
    readonly fields?: Record<string, Wanted>
    /** Form field of the file. */
    readonly file: string
  }
  /** `file` is the path it is handed out at, with `{{id}}`; default `/files/{{id}}`. */
  readonly success: Reply & { readonly file?: string }
  /** What is answered to wrong credentials. */
  readonly refusal: Reply & { readonly says: string }
  /** Further answers that are documented, and what becomes of them. */
  readonly others: readonly (Reply & {
    readonly name: string
    readonly url?: string
    readonly deleteUrl?: string
    readonly says?: string
    readonly retryable?: boolean
  })[]
}

type Played = Pick<Exchange, 'request' | 'success'>

/** Headers that are about the connection or the body, and the client's name. */
const UNDOCUMENTED = [
  ...['host', 'connection', 'user-agent', 'accept', 'accept-encoding'],
  ...['content-type', 'content-length'],
]

class Difference extends Error {}

function check(isRight: boolean, difference: string): asserts isRight {
  if (!isRight) throw new Difference(difference)
}

/** Both have the same names with the same values, or with values like an expression. */
function compare(kind: string, sent: ReadonlyMap<string, string>, wanted: Record<string, Wanted>): void {
  for (const [name, value] of Object.entries(wanted)) {
    const found = sent.get(name)
    check(found !== undefined, `the ${kind} "${name}" is missing`)
    const isRight = typeof value === 'string' ? found === value : new RegExp(value.like).test(found)
    check(isRight, `the ${kind} "${name}" has another value`)
  }
  for (const name of sent.keys())
    check(Object.hasOwn(wanted, name), `the ${kind} "${name}" is not documented`)
}

/** Pairs as a map; a name that comes twice is a difference. */
function toMap(kind: string, pairs: readonly (readonly [string, string])[]): Map<string, string> {
  const map = new Map(pairs)
  check(map.size === pairs.length, `a ${kind} comes twice`)
  return map
}

/** Reads a form by RFC 7578 to the letter: fields, and the one file. */
function readForm(type: string | undefined, body: Buffer) {
  const boundary = /^multipart\/form-data; boundary=([\w'()+,./:=?-]{1,70})$/.exec(type ?? '')?.[1]
  check(boundary !== undefined, 'the body is no form')
  const end = Buffer.from(`\r\n--${boundary}`)
  check(
    body.subarray(0, end.length).equals(Buffer.from(`--${boundary}\r\n`)),
    'the form has a wrong beginning',
  )
  const fields: [string, string][] = []
  const found: { name: string; content: Buffer }[] = []
  let at = end.length
  for (;;) {
    const headEnd = body.indexOf('\r\n\r\n', at)
    const next = body.indexOf(end, headEnd + 4)
    check(headEnd >= 0 && next >= 0, 'the form breaks off')
    const head = body.toString('utf8', at, headEnd)
    const content = body.subarray(headEnd + 4, next)
    const [, name, , fileType] =
      /^Content-Disposition: form-data; name="([^"\r\n]+)"(?:; filename="([^"\r\n/]+)"\r\nContent-Type: ([\w.+-]+\/[\w.+-]+))?$/.exec(
        head,
      ) ?? []
    check(name !== undefined, `a part of the form begins with ${JSON.stringify(head)}`)
    if (fileType === undefined) fields.push([name, content.toString()])
    else found.push({ name, content })
    at = next + end.length + 2
    const mark = body.toString('latin1', at - 2, at)
    if (mark === '--') break
    check(mark === '\r\n', 'a part of the form has a wrong end')
  }
  check(body.toString('latin1', at) === '\r\n', 'something follows the form')
  const [file] = found
  check(file !== undefined && found.length === 1, `the form has ${found.length} files`)
  return { fields: toMap('field', fields), file }
}

/** @returns the bytes of the file of a request that is as documented */
function play(
  { request: wanted }: Played,
  request: IncomingMessage,
  path: string,
  query: URLSearchParams,
  body: Buffer,
): Buffer {
  check(request.method === wanted.method, `the method is ${request.method}`)
  check(path === wanted.path, `the path is ${path}`)
  compare('parameter', toMap('parameter', [...query]), wanted.query ?? {})
  const headers = Object.entries(wanted.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value])
  const documented: Record<string, string> = Object.fromEntries(headers)
  const sent = Object.entries(request.headers).flatMap(([name, value]): [string, string][] =>
    Object.hasOwn(documented, name) || !UNDOCUMENTED.includes(name) ? [[name, String(value)]] : [],
  )
  compare('header', new Map(sent), documented)
  check(request.headers['content-length'] === String(body.length), 'the length of the body was not said')
  const { fields, file } = readForm(request.headers['content-type'], body)
  compare('field', fields, wanted.fields ?? {})
  check(file.name === wanted.file, `the file is in the field "${file.name}"`)
  return file.content
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  const isText = typeof body === 'string'
  response.writeHead(status, { 'Content-Type': isText ? 'text/plain' : 'application/json' })
  response.end(isText ? body : JSON.stringify(body))
}

/**
 * Plays documented exchanges. A request that is not exactly as documented gets 400 and what differs; values are not
 * repeated, since some are secrets.
 */
export async function startReplay(): Promise<Replay> {
  const exchanges = new Map<string, Played>()
  const files = new Map<string, Buffer>()

  function respond(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
    const base = `http://${request.headers.host}`
    const { pathname, searchParams } = new URL(request.url ?? '', base)
    const file = files.get(pathname)
    if (request.method === 'GET' && file) {
      response.end(file)
      return
    }
    const [, name = '', path = ''] = /^\/replay\/(\w+)(\/.*)$/.exec(pathname) ?? []
    const exchange = exchanges.get(name)
    try {
      check(exchange !== undefined, `nothing is played at ${path}`)
      const bytes = play(exchange, request, path, searchParams, body)
      const { success } = exchange
      const id = randomBytes(8).toString('hex')
      const kept = (success.file ?? '/files/{{id}}').replace('{{id}}', id)
      files.set(kept, bytes)
      const text = JSON.stringify(success.body)
        .replaceAll('{{url}}', base + kept)
        .replaceAll('{{id}}', id)
        .replaceAll('{{base}}', base)
      answer(response, success.status, JSON.parse(text))
    } catch (error) {
      if (!(error instanceof Difference)) throw error
      answer(response, 400, `Not as documented: ${error.message}.`)
    }
  }

  const server = createServer((request, response) => {
    buffer(request).then(
      body => respond(request, response, body),
      () => {}, // whoever breaks off gets no answer
    )
  })
  const { port, url, close } = await listen(server)
  return {
    ...{ port, url, close },
    async replay(exchange) {
      const name = `e${exchanges.size + 1}`
      exchanges.set(name, exchange)
      return `${url}/replay/${name}`
    },
  }
}
