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
  const proxy = await startBreakingProxy(targetPort, (from, sent) =>
    from === 'client' && sent > limit ? 'resets' : undefined,
  )
  return {
    ...proxy,
    cutAfter: bytes => {
      limit = bytes
    },
    mend: () => {
      limit = Number.POSITIVE_INFINITY
    },
  }
}

/**
 * Starts a TCP proxy that breaks connections.
 *
 * @param breaks is asked for each connection, and before it passes on data. `sent` is what the client has sent, in bytes
 */
export async function startBreakingProxy(
  targetPort: number,
  breaks: (from: 'connection' | 'client' | 'server', sent: number) => 'resets' | 'closes' | undefined,
): Promise<{ readonly port: number; close(): void }> {
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true }, client => {
    const upstream = connect({ port: targetPort, host: '127.0.0.1', noDelay: true })
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    }
    let sent = 0
    const isBroken = (from: 'connection' | 'client' | 'server') => {
      const how = breaks(from, sent)
      if (how === 'resets') client.resetAndDestroy()
      else if (how === 'closes') client.end()
      if (how !== undefined) upstream.resetAndDestroy()
      return how !== undefined
    }
    if (isBroken('connection')) return
    client.on('data', data => {
      sent += data.length
      if (!isBroken('client')) upstream.write(data)
    })
    upstream.on('data', data => isBroken('server') || client.write(data))
    client.on('end', () => upstream.end())
    upstream.on('end', () => client.end())
  })
  return {
    port: await listen(server),
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
