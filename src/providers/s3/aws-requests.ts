import { Readable } from 'node:stream'
import type { HttpClient } from '../../http/client.ts'
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
 * Makes the AWS SDK send its requests through the connections of the destination, with its outbound proxies and CA
 * certificates. The SDK sends requests to instance metadata services without this handler.
 */
export function createRequestHandler(http: HttpClient) {
  return {
    metadata: { handlerProtocol: 'http/1.1' },
    async handle({ protocol, hostname, port, path, query = {}, method, headers, body }: SdkRequest) {
      const url = new URL(`${protocol}//${hostname}${port === undefined ? '' : `:${port}`}${path}`)
      url.search = formatQuery(query)
      const bytes = typeof body === 'string' ? body : body && Buffer.from(body)
      const request = { method, url, headers, body: bytes, accept: () => true }
      const { status, bytes: answer, ...reply } = await http.send(request, AbortSignal.timeout(TIME_LIMIT_MS))
      return { response: { statusCode: status, headers: reply.headers, body: Readable.from([answer]) } }
    },
  }
}
