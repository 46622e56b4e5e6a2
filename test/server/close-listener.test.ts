import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { closeListener } from '../../src/server/http-server.ts'

/** A server that sends a word to each client. */
async function listen(host: string): Promise<{ server: Server; port: number }> {
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.end('word')
  }).listen(0, host)
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return { server, port: (server.address() as AddressInfo).port }
}

/** @returns what a client gets: the word, or why it gets nothing */
function ask(port: number, host: string): Promise<string> {
  return new Promise(resolve => {
    let text = ''
    const socket = connect(port, host)
    socket.on('data', data => (text += data))
    socket.on('end', () => resolve(text))
    socket.on('error', error => resolve('code' in error ? String(error.code) : error.message))
  })
}

it.each(['127.0.0.1', '0.0.0.0', '::', '::1'])(
  'every connection to %s that is queued when the listener is closed is accepted, later ones are refused',
  async host => {
    const { server, port } = await listen(host)
    const to = host.includes(':') ? '::1' : '127.0.0.1'
    const queued = Array.from({ length: 100 }, () => ask(port, to))
    await closeListener(server)
    expect(new Set(await Promise.all(queued))).toEqual(new Set(['word']))
    expect(await ask(port, to)).toBe('ECONNREFUSED')
  },
)
