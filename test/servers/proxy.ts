import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Stands between a client and a server, and can spoil every connection that goes through it. */
export interface Proxy {
  /** The first of its ports. */
  readonly port: number
  /** Connections that are open now. */
  connections(): number
  /** How many there were so far. */
  accepted(): number
  /** From now on a connection is reset as soon as this many bytes have gone to the server over it. */
  cutAfter(bytes: number): void
  /** From now on nothing gets through either way, and nobody is told. */
  silence(): void
  /** Lets everything through again, over new connections. */
  mend(): void
  close(): Promise<void>
}

/** What it does to a connection: how many bytes may go to the server yet. */
interface Way {
  readonly client: Socket
  readonly server: Socket
  left: number
}

/**
 * Starts one in front of ports of 127.0.0.1: on a free port there, or on the same ports of another loopback address,
 * which protocols need that open further connections to the host they were reached at.
 */
export async function startProxy(targets: readonly number[], host?: string): Promise<Proxy> {
  const ways = new Set<Way>()
  let limit = Number.POSITIVE_INFINITY
  let isSilent = false
  let accepted = 0

  const reset = (way: Way) => {
    way.client.resetAndDestroy()
    way.server.resetAndDestroy()
  }
  const accept = (client: Socket, target: number) => {
    const server = connect({ port: target, host: '127.0.0.1', noDelay: true })
    accepted++
    const way: Way = { client, server, left: limit }
    ways.add(way)
    client.setNoDelay(true)
    client.on('data', (data: Buffer) => {
      if (isSilent) return
      server.write(data.subarray(0, way.left))
      way.left -= data.length
      if (way.left <= 0) reset(way)
    })
    if (limit <= 0) reset(way)
    server.on('data', data => isSilent || client.write(data))
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      one.on('error', () => {})
      one.on('end', () => (isSilent ? reset(way) : other.end()))
      one.on('close', () => {
        ways.delete(way)
        if (!isSilent) other.destroySoon()
      })
    }
  }

  const servers = targets.map(target =>
    createServer({ allowHalfOpen: true }, client => accept(client, target)),
  )
  for (const [i, server] of servers.entries()) {
    server.listen(host === undefined ? 0 : targets[i], host ?? '127.0.0.1')
    await once(server, 'listening')
  }
  return {
    port: (servers[0]?.address() as AddressInfo | undefined)?.port ?? 0,
    connections: () => ways.size,
    accepted: () => accepted,
    cutAfter(bytes) {
      limit = bytes
      for (const way of ways) way.left = bytes
    },
    silence() {
      isSilent = true
    },
    mend() {
      limit = Number.POSITIVE_INFINITY
      for (const way of ways) {
        if (isSilent) reset(way)
        else way.left = limit
      }
      isSilent = false
    },
    async close() {
      for (const way of ways) reset(way)
      await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))))
    },
  }
}
