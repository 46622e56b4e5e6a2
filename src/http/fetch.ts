import { createHttpAgents } from './agents.ts'
import { endpointOf, exchange } from './exchange.ts'
import { type Outgoing, targetOf } from './proxy/outgoing.ts'

/** Most of an answer that is read, bytes. */
const MAX_REPLY_BYTES = 16 * 1024 * 1024
/** A connection on which nothing happens for so long is given up, as by `fetch`. */
const IDLE_TIMEOUT_MS = 300_000
/** Statuses of answers that can't have a body. */
const WITHOUT_BODY = new Set([204, 205, 304])

export interface FetchInit {
  readonly method: string
  readonly body: FormData | string | null
  readonly headers: Headers
  readonly signal: AbortSignal
}

/**
 * The `fetch` of Node without redirects, and through the proxy that is meant for an address, which that of Node does not
 * ask for.
 *
 * @returns what throws as `fetch` does, the system's errors, or ProxyFailure
 */
export function createFetch(outgoing: Outgoing): (url: URL, init: FetchInit) => Promise<Response> {
  const agents = createHttpAgents({ insecureTls: false, idleTimeoutMs: IDLE_TIMEOUT_MS, outgoing })
  return async (url, init) => {
    if (outgoing.proxyFor(targetOf(url)) === undefined) return fetch(url, { ...init, redirect: 'manual' })
    const { method, signal } = init
    const request = new Request(url, init) // writes the form
    const headers = { host: url.host, accept: '*/*', ...Object.fromEntries(request.headers) }
    const {
      status,
      headers: answered,
      bytes,
    } = await exchange(
      {
        ...{
          ...endpointOf(url),
          method,
          headers,
          way: await agents.get(url),
          path: url.pathname + url.search,
        },
        body: request.body ? chunksOf(request.body) : undefined,
        maxReplyBytes: MAX_REPLY_BYTES,
      },
      signal,
    )
    const body = WITHOUT_BODY.has(status) ? null : new Uint8Array(bytes)
    const pairs = Object.entries(answered).map(([name, value]) => [name, String(value)] as [string, string])
    return new Response(body, { status, headers: pairs })
  }
}

async function* chunksOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  for await (const chunk of body) yield Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
}
