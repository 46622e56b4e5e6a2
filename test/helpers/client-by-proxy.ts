import { createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { type ConnectionSettings, createConnections } from '../../src/http/connections.ts'
import { createOutgoing } from '../../src/http/proxy/outgoing.ts'
import { listen } from './listen.ts'

const signal = new AbortController().signal

/** A client with a proxy of its own, so that servers of this machine are reached through it. */
export function clientBy(proxy: string, settings: ConnectionSettings = {}) {
  const outgoing = createOutgoing({ proxy: 'none', noProxy: [] }, {}).with(proxy)
  const { http, close } = createConnections({ ...settings, outgoing })
  onTestFinished(close)
  return {
    put: (url: string, body = 'x') => http.send({ method: 'PUT', url: `${url}/a?b=c`, body }, signal),
    close,
  }
}

/** A proxy that does to each connection what it is told. */
export async function evil(handle: (socket: Socket) => void): Promise<{ host: string; sockets: Socket[] }> {
  const sockets: Socket[] = []
  const server = createServer(socket => {
    sockets.push(socket)
    handle(socket)
  })
  const { port, close } = await listen(server)
  onTestFinished(close)
  return { host: `127.0.0.1:${port}`, sockets }
}

/** @param answer sent after the first bytes, Latin-1 */
export const answering = (answer: string) =>
  evil(socket => socket.once('data', () => socket.end(answer, 'latin1')))
