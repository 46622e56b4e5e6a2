import { createServer, type IncomingMessage, type ServerResponse, request as sendRequest } from 'node:http'
import { listen } from './listen.ts'

/** What happens to a request instead of being passed on. */
export type Fault =
  /** The proxy responds at once, before it has read the body. */
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string }
  /** The proxy reads the request and never responds. */
  | 'silence'
  /** The proxy resets the connection. */
  | 'reset'
  /** The proxy forwards the request, and resets the connection instead of forwarding the response. */
  | 'lost answer'

/** An HTTP proxy on 127.0.0.1 in front of a server. It forwards each request for which no fault is chosen. */
export interface FaultProxy {
  readonly port: number
  /** `METHOD /path` of every request. */
  readonly seen: readonly string[]
  /** Returns the number of open connections. */
  countConnections(): Promise<number>
  close(): void
}

/** @param decide returns the fault for a request, or undefined to forward it; `index` counts from 0 */
export async function startFaultProxy(
  targetPort: number,
  decide: (request: { line: string; index: number }) => Fault | undefined,
): Promise<FaultProxy> {
  const seen: string[] = []
  const server = createServer((request, response) => {
    const line = `${request.method} ${request.url}`
    seen.push(line)
    const fault = decide({ line, index: seen.length - 1 })
    if (fault === undefined || fault === 'lost answer') passOn(request, response, targetPort, fault)
    else if (fault === 'reset') request.socket.resetAndDestroy()
    else if (fault === 'silence') request.resume()
    else response.writeHead(fault.status, fault.headers).end(fault.body)
  })
  return {
    port: await listen(server),
    seen,
    countConnections: () =>
      new Promise((resolve, reject) =>
        server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
      ),
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

function passOn(
  request: IncomingMessage,
  response: ServerResponse,
  port: number,
  fault: 'lost answer' | undefined,
): void {
  const { method, url, headers } = request
  const upstream = sendRequest({ host: '127.0.0.1', port, method, path: url, headers }, answer => {
    if (fault === 'lost answer') {
      answer.resume().on('end', () => request.socket.resetAndDestroy())
      return
    }
    response.writeHead(answer.statusCode ?? 502, answer.headers)
    // OpenStack Swift sends the end of a chunked body after some responses to HEAD, which node:http reports as an error.
    if (method === 'HEAD') response.end()
    else answer.pipe(response)
  })
  upstream.on('error', () => response.writableEnded || response.destroy())
  request.on('close', () => {
    if (!request.complete) upstream.destroy()
  })
  request.pipe(upstream)
}
