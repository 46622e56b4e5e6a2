import { readFileSync } from 'node:fs'
import { connect, Server } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { urlOf } from './port.ts'

/** Maximum time to wait for a moment in which no connection is queued. */
const LONGEST_MS = 2000
/** Node's default length of the queue. */
const BACKLOG = 511
/** A line of `/proc/net/tcp`: local port, remote port, state, and of a listening socket the number of queued connections. */
const CONNECTION = /^ *\d+: \w+:(\w{4}) \w+:(\w{4}) (\w\w) \w{8}:(\w{8})/gm
const [ESTABLISHED, SYN_RECEIVED, LISTENING] = ['01', '03', '0A']

/** Node's own object of the listening socket. Nothing public changes the length of the queue of a socket that listens. */
interface Listening {
  readonly _handle: { listen(backlog: number): number } | null
}

/**
 * Stops listening without breaking a connection. Connections that are queued in the system are reset when the listener is closed.
 * A reverse proxy may have sent a streamed request there, which it can't send again. Refused connections break nothing, because
 * the reverse proxy uses another server.
 *
 * Open connections stay open. The `close` of HTTP servers would also close idle ones, on which a client may be sending.
 */
export async function closeListener(server: Server): Promise<void> {
  let accepted = 0
  const count = () => accepted++
  server.on('connection', count)
  for (const end = performance.now() + LONGEST_MS; performance.now() < end; ) {
    const before = accepted
    await nextTurn() // Node accepts queued connections.
    if (accepted === before && (await isQueueBlocked(server))) break
  }
  server.off('connection', count)
  Server.prototype.close.call(server)
}

/**
 * Whether no connection is queued, and none can be until this turn of the event loop ends: the queue is limited to one
 * connection, and this process makes it. Only Linux shows the queue. Elsewhere it is true.
 */
async function isQueueBlocked(server: Server): Promise<boolean> {
  const address = server.address()
  const { _handle: listener } = server as unknown as Listening
  if (!listener || !address || typeof address === 'string') return true
  const { hostname } = new URL(urlOf({ host: address.address, port: address.port }))
  // With a short queue, the end of a handshake is lost, and repeated after a second.
  if (look(address.port).isHandshaking) return false
  listener.listen(0)
  const own = connect(address.port, hostname.replace(/[[\]]/g, ''))
  own.on('error', () => {})
  await new Promise<void>(resolve => process.nextTick(resolve)) // Node connects in a tick of the same turn.
  // The second look finds a connection that the system was adding during the first one.
  const isBlocked = isOnlyQueued(own.localPort, address.port) && isOnlyQueued(own.localPort, address.port)
  if (!isBlocked) listener.listen(BACKLOG)
  own.destroy()
  return isBlocked
}

function isOnlyQueued(from: number | undefined, port: number): boolean {
  const { queued, clients, isHandshaking } = look(port)
  if (queued === undefined) return true
  return !isHandshaking && queued === 1 && from !== undefined && clients.has(from)
}

/** The connections to a port: how many are queued (undefined on systems without `/proc/net`), and the ports of all clients. */
function look(port: number): { queued: number | undefined; clients: Set<number>; isHandshaking: boolean } {
  const clients = new Set<number>()
  let queued: number | undefined
  let isHandshaking = false
  for (const [, local = '', remote = '', state, length = ''] of readConnections().matchAll(CONNECTION)) {
    if (Number.parseInt(local, 16) !== port) continue
    if (state === SYN_RECEIVED) isHandshaking = true
    if (state === LISTENING) queued = (queued ?? 0) + Number.parseInt(length, 16)
    if (state === ESTABLISHED) clients.add(Number.parseInt(remote, 16))
  }
  return { queued, clients, isHandshaking }
}

/** @returns '' on systems without `/proc/net` */
function readConnections(): string {
  try {
    return ['tcp', 'tcp6'].map(name => readFileSync(`/proc/self/net/${name}`, 'utf8')).join('')
  } catch {
    return ''
  }
}
