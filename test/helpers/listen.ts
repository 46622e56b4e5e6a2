import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo, Server, Socket } from 'node:net'

export interface Listening {
  readonly port: number
  /** `http://127.0.0.1:PORT`, without a slash at its end. */
  readonly url: string
  /** Ends it, and every connection. */
  close(): Promise<void>
}

/** Has a server of any kind, or one for HTTP that answers like this, listen on a free port of 127.0.0.1. */
export async function listen(answer: Server | RequestListener): Promise<Listening> {
  const server = typeof answer === 'function' ? createServer(answer) : answer
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket.on('error', () => {})) // the client may go at any time
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    ...{ port, url: `http://127.0.0.1:${port}` },
    async close() {
      const closed = new Promise(resolve => server.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
