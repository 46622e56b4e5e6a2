import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { expect } from 'vitest'
import { type Listening, listen } from '../helpers/listen.ts'

/** A value, or an expression of one that differs each time. */
type Wanted = Readonly<Record<string, string | { readonly like: string }>>

export interface Reply {
  readonly status: number
  /** `{{url}}` is where the file is handed out, `{{id}}` what it is called there, `{{base}}` the server. */
  readonly body: unknown
}

/** What a vendor documents of its API: a file in test/fixtures/http-hosts. */
export interface Exchange {
  /** Where it is documented. */
  readonly source: readonly string[]
  readonly request: {
    readonly method: string
    readonly path: string
    readonly query?: Wanted
    readonly headers?: Wanted
    readonly fields?: Wanted
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

export interface FormHost extends Listening {
  /** How the last request that was refused differs from the documented one. */
  difference(): string
}

/** Headers that are about the connection or the body, and the client's name. */
const UNDOCUMENTED = [
  ...['host', 'connection', 'user-agent', 'accept', 'accept-encoding'],
  ...['content-type', 'content-length'],
]

/** Starts a host that keeps and hands out what is sent exactly as documented, and refuses every other request. */
export async function startFormHost({ request: wanted, success, refusal }: Exchange): Promise<FormHost> {
  const files = new Map<string, Buffer>()
  const headers = Object.entries(wanted.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value])
  const documented = {
    ...{ method: wanted.method, path: wanted.path, file: wanted.file },
    query: matching(wanted.query),
    headers: matching(Object.fromEntries(headers)),
    fields: matching(wanted.fields),
  }
  let difference = ''

  /** Keeps the file of a request. @throws Error if it is not as documented */
  async function keep(request: IncomingMessage, { pathname: path, searchParams }: URL): Promise<string> {
    const body = await buffer(request)
    const { 'content-type': type = '', 'content-length': length } = request.headers
    expect(length).toBe(String(body.length))
    const form = await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData()
    const parts = [...form].flatMap(([name, value]) => (typeof value === 'string' ? [] : [{ name, value }]))
    const sent = Object.entries(request.headers).filter(
      ([name]) => name in documented.headers || !UNDOCUMENTED.includes(name),
    )
    const fields = [...form].filter(([, value]) => typeof value === 'string')
    expect([parts.length, searchParams.size, fields.length]).toEqual([
      ...[1, Object.keys(documented.query).length, Object.keys(documented.fields).length],
    ])
    expect({
      ...{ method: request.method, path, file: parts[0]?.name },
      query: Object.fromEntries(searchParams),
      headers: Object.fromEntries(sent),
      fields: Object.fromEntries(fields),
    }).toEqual(documented)
    expect(parts[0]?.value.name).not.toContain('/')
    const id = randomBytes(8).toString('hex')
    files.set(fileOf(id), Buffer.from(await (parts[0]?.value ?? new Blob([])).arrayBuffer()))
    return id
  }
  const fileOf = (id: string) => (success.file ?? '/files/{{id}}').replace('{{id}}', id)

  const server = await listen(async (request, response) => {
    const base = `http://${request.headers.host}`
    const url = new URL(request.url ?? '', base)
    const file = files.get(url.pathname)
    if (request.method === 'GET' && file) return void response.end(file)
    let [reply, id]: [Reply, string] = [success, '']
    try {
      id = await keep(request, url)
    } catch (error) {
      if (request.destroyed && !request.complete) return // the client went away
      difference = String(error)
      reply = refusal
    }
    const { status, body } = reply
    const text = (typeof body === 'string' ? body : JSON.stringify(body))
      .replaceAll('{{url}}', base + fileOf(id))
      .replaceAll('{{id}}', id)
      .replaceAll('{{base}}', base)
    response.writeHead(status, {
      'Content-Type': typeof body === 'string' ? 'text/plain' : 'application/json',
    })
    response.end(text)
  })
  return { ...server, difference: () => difference }
}

function matching(wanted: Wanted = {}): Record<string, unknown> {
  const entries = Object.entries(wanted).map(([name, value]) => [
    name,
    typeof value === 'string' ? value : expect.stringMatching(new RegExp(value.like)),
  ])
  return Object.fromEntries(entries)
}
