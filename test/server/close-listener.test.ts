import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { createInterface } from 'node:readline'
import { expect, it, onTestFinished } from 'vitest'
import { closeListener } from '../../src/server/close-listener.ts'

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

/** Connects again and again, from another process, until it is refused. Prints what every connection got but the word. */
const CLIENTS = `
  const { connect } = require('node:net')
  const ask = () => {
    let text = '', isMade = false
    const socket = connect(Number(process.argv[1]), '127.0.0.1', () => (isMade = true))
    socket.on('data', data => (text += data))
    socket.on('error', error => error.code === 'ECONNREFUSED' || console.log(error.code, isMade))
    socket.on('close', isFailed => {
      if (!isFailed && text !== 'word') console.log('nothing')
      if (!isFailed) ask()
    })
  }
  console.log('begun')
  for (let n = 0; n < 10; n++) ask()`

it('no connection breaks while clients connect all the time', async () => {
  for (let round = 0; round < 5; round++) {
    const { server, port } = await listen('127.0.0.1')
    const clients = spawn(process.execPath, ['-e', CLIENTS, String(port)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const lines: string[] = []
    createInterface(clients.stdout).on('line', line => lines.push(line))
    for (let accepted = 0; accepted < 50; accepted++) await once(server, 'connection')
    await closeListener(server)
    await once(clients, 'close')
    expect(lines).toEqual(['begun'])
  }
})
