import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { expect, it } from 'vitest'
import { closeListener } from '../../../src/server/close-listener.ts'

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
    const server = createServer(socket => void socket.on('error', () => {}).end('word'))
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
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
