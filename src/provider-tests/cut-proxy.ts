import { connect, createServer, type Socket } from 'node:net'
import { listen } from './listen.ts'

/** A TCP proxy on 127.0.0.1 that can reset every connection. */
export interface CutProxy {
  readonly port: number
  /** Resets each connection as soon as it has carried this many bytes to the server. */
  cutAfter(bytes: number): void
  /** Stops resetting connections. */
  mend(): void
  close(): void
}

export async function startCutProxy(targetPort: number): Promise<CutProxy> {
  let limit = Number.POSITIVE_INFINITY
  const sockets = new Set<Socket>()
  const server = createServer(client => {
    const upstream = connect(targetPort, '127.0.0.1')
    let sent = 0
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    }
    client.on('data', chunk => {
      sent += chunk.length
      if (sent <= limit) return
      client.resetAndDestroy()
      upstream.resetAndDestroy()
    })
    client.pipe(upstream).pipe(client)
  })
  return {
    port: await listen(server),
    cutAfter: bytes => {
      limit = bytes
    },
    mend: () => {
      limit = Number.POSITIVE_INFINITY
    },
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
