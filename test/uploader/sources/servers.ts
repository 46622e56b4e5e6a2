import http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import { onTestFinished } from 'vitest'
import type { Lookup } from '../../../src/http/dial.ts'
import { listen } from '../../helpers/listen.ts'

export interface Served {
  /** `http://127.0.0.1:PORT`, without a slash at its end. */
  origin: string
  port: number
  /** Every request that arrived, in order. */
  requests: http.IncomingMessage[]
  /** How many connections were made. */
  connections(): number
  /** Ends it before the test is over. */
  close(): Promise<void>
}

/** A server on loopback that lives until the end of the test. */
export async function serve(
  handler: http.RequestListener,
  tls?: { key: string; cert: string },
): Promise<Served> {
  const requests: http.IncomingMessage[] = []
  const listener: http.RequestListener = (req, res) => {
    requests.push(req)
    handler(req, res)
  }
  const server = tls ? https.createServer(tls, listener) : http.createServer(listener)
  const listening = await listenAndCount(server)
  return { origin: `${tls ? 'https' : 'http'}://127.0.0.1:${listening.port}`, requests, ...listening }
}

/** A server that says what it likes, byte by byte. */
export async function serveRaw(handler: (socket: net.Socket) => void): Promise<Served> {
  const server = net.createServer(handler)
  const listening = await listenAndCount(server)
  return { origin: `http://127.0.0.1:${listening.port}`, requests: [], ...listening }
}

async function listenAndCount(server: net.Server) {
  let count = 0
  server.on('connection', () => count++)
  const { port, close } = await listen(server)
  onTestFinished(close)
  return { port, close, connections: () => count }
}

/** A lookup that knows these answers only: one list for each call, the last one for all further calls. */
export function answering(...answers: string[][]): Lookup & { asked: string[] } {
  const asked: string[] = []
  const lookup = async (host: string) => answers[Math.min(asked.push(host), answers.length) - 1] ?? []
  return Object.assign(lookup, { asked })
}
