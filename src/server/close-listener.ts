import { readFileSync } from 'node:fs'
import { connect, Server, type Socket } from 'node:net'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { urlOf } from './port.ts'

/** Maximum time to wait for a moment in which no connection is queued. */
const LONGEST_MS = 5000
/** Linux repeats a handshake whose end was lost after one second. */
const HANDSHAKE_MS = 1100
/** Node's default length of the queue. */
const BACKLOG = 511
/** Only Linux shows the queue, in these files. */
const FILES = ['/proc/self/net/tcp', '/proc/self/net/tcp6']
/** A line of them: local port, remote port, state, and of a listening socket the number of queued connections. */
const CONNECTION = /^ *\d+: \w+:(\w{4}) \w+:(\w{4}) (\w\w) \w{8}:(\w{8})/gm
const [ESTABLISHED, SYN_RECEIVED, LISTENING] = ['01', '03', '0A']

/** Node's own object of a socket. Nothing public changes the length of the queue, or tells at once that a socket is connected. */
interface Internal {
  readonly _handle: { listen(backlog: number): number; getpeername(address: object): number } | null
}
const internalOf = (socket: Server | Socket) => (socket as unknown as Internal)._handle

/**
 * Stops listening without breaking a connection. Connections that are queued in the system are reset when the listener is closed.
 * A reverse proxy may have sent a streamed request there, which it can't send again. Refused connections break nothing, because
 * the reverse proxy uses another server.
 *
 * Open connections stay open. The `close` of HTTP servers would also close idle ones, on which a client may be sending.
 *
 * @param mostMs time after which it closes in any case; default and maximum 5 s
 */
export async function closeListener(server: Server, mostMs = LONGEST_MS): Promise<void> {
  const end = performance.now() + Math.min(mostMs, LONGEST_MS)
  do
    await nextTurn() // Node accepts queued connections.
  while (!(await isQueueBlocked(server, end)) && performance.now() < end)
  Server.prototype.close.call(server)
}

/**
 * Whether no connection is queued, and none can be until this turn of the event loop ends: the queue is limited to one
 * connection, and this process makes it. If the end of another handshake was lost, this waits until Linux repeats it, at most
 * until `end`. Systems that don't show the queue: true.
 */
async function isQueueBlocked(server: Server, end: number): Promise<boolean> {
  const address = server.address()
  const listener = internalOf(server)
  if (!listener || !address || typeof address === 'string' || process.platform !== 'linux') return true
  const { hostname } = new URL(urlOf({ host: address.address, port: address.port }))
  listener.listen(0)
  const own = connect(address.port, hostname.replace(/[[\]]/g, ''))
  own.on('error', () => {})
  await new Promise<void>(resolve => process.nextTick(resolve)) // Node connects in a tick of the same turn.
  try {
    // It can't connect while another connection is queued. Reading the files takes milliseconds.
    if (internalOf(own)?.getpeername({}) !== 0) return false
    // The second time finds a connection that the system was adding during the first one.
    if (isOnlyQueued(own.localPort, address.port) && isOnlyQueued(own.localPort, address.port)) return true
  } finally {
    own.destroy()
  }
  listener.listen(BACKLOG)
  await sleep(Math.min(HANDSHAKE_MS, Math.max(0, end - performance.now())))
  return false
}

function isOnlyQueued(from: number | undefined, port: number): boolean {
  let queued = 0
  let isMade = false
  const connections = readConnections()
  if (connections === '') return true
  for (const [, local = '', remote = '', state, length = ''] of connections.matchAll(CONNECTION)) {
    if (Number.parseInt(local, 16) !== port) continue
    if (state === SYN_RECEIVED) return false
    if (state === LISTENING) queued += Number.parseInt(length, 16)
    if (state === ESTABLISHED && Number.parseInt(remote, 16) === from) isMade = true
  }
  return isMade && queued === 1
}

/** @returns '' if this process may not read the files, as in some containers */
function readConnections(): string {
  const read = (file: string) => {
    try {
      return readFileSync(file, 'utf8')
    } catch {
      return '' // A system without IPv6 has one of them.
    }
  }
  return FILES.map(read).join('')
}
