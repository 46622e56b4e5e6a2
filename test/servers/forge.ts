import type { IncomingMessage, ServerResponse } from 'node:http'
import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'

export interface ForgeRequest {
  readonly method: string
  /** Without the query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage['headers']
  /** Undefined when there is none. */
  readonly body: unknown
}

export interface ForgeAnswer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  /** The request reaches the server all the same, and its answer is lost. */
  readonly isLate?: boolean
}

/** What to answer instead of the server, if anything; the request waits for it. */
export type AnswerInstead = (
  request: ForgeRequest,
) => ForgeAnswer | undefined | Promise<ForgeAnswer | undefined>

export async function readRequest(req: IncomingMessage): Promise<{ request: ForgeRequest; bytes: Buffer }> {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer)
  const bytes = Buffer.concat(chunks)
  const [path = '', query] = (req.url ?? '').split('?')
  const request = {
    method: req.method ?? '',
    path,
    query: new URLSearchParams(query),
    headers: req.headers,
    body: bytes.length > 0 ? JSON.parse(bytes.toString()) : undefined,
  }
  return { request, bytes }
}

/** Ends the connection instead when the status is 0. */
export function answer(res: ServerResponse, { status, headers, body }: ForgeAnswer): void {
  if (status === 0) return void res.destroy()
  const text = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body ?? {})
  res.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(text)
}

const ajv = addFormats.default(new Ajv({ strict: false }))

/** What is wrong with a value; undefined when nothing is. */
export function findFault(schema: object, value: unknown): string | undefined {
  const validate = ajv.compile(schema)
  return validate(value) ? undefined : ajv.errorsText(validate.errors)
}
