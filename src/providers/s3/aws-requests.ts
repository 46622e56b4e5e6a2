import { Readable } from 'node:stream'
import { createHttpAgents } from '../../http/agents.ts'
import { endpointOf, exchange } from '../../http/exchange.ts'
import type { Outgoing } from '../../http/proxy/outgoing.ts'
import { formatQuery } from './sign.ts'

/** A request in the format of the AWS SDK. */
interface SdkRequest {
  readonly protocol: string
  readonly hostname: string
  readonly port?: number
  readonly method: string
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

/** Time limit for one request and its response. */
const TIME_LIMIT_MS = 30_000

/**
 * Makes the AWS SDK send its requests through the configured outbound proxies and trust the configured CA certificates.
 * The SDK sends requests to instance metadata services without this handler.
 *
 * @throws as `exchange`
 */
export function createRequestHandler(outgoing: Outgoing | undefined) {
  return {
    metadata: { handlerProtocol: 'http/1.1' },
    async handle({ protocol, hostname, port, path, query, method, headers, body }: SdkRequest) {
      const url = new URL(`${protocol}//${hostname}${port === undefined ? '' : `:${port}`}${path}`)
      url.search = formatQuery(query ?? {})
      // Credentials are requested once an hour at most, so no connection is kept open.
      const agents = createHttpAgents({ idleTimeoutMs: TIME_LIMIT_MS, outgoing })
      try {
        const reply = await exchange(
          {
            ...endpointOf(url),
            method,
            headers,
            way: await agents.get(url),
            path: url.pathname + url.search,
            body: typeof body === 'string' ? Buffer.from(body) : body && Buffer.concat([body]),
          },
          AbortSignal.timeout(TIME_LIMIT_MS),
        )
        const answer = {
          statusCode: reply.status,
          headers: reply.headers,
          body: Readable.from([reply.bytes]),
        }
        return { response: answer }
      } finally {
        agents.close()
      }
    },
  }
}
