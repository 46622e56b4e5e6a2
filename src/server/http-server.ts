import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { UploadError } from '../errors.ts'
import { memoryForRequests } from '../payload/container-memory.ts'
import { type Connection, parseOneByOne } from './one-by-one.ts'
import { answerUnreadable, isCut, LINGER_MS, type NoteUnreadable, type Unreadable } from './unreadable.ts'

/** Timeout of the request headers. Bodies have `limits.bodyIdle`. */
const HEADERS_TIMEOUT_MS = 20_000
/** Keep-alive timeout. It is longer than that of common reverse proxies, so that the proxy closes idle connections. */
const KEEP_ALIVE_MS = 65_000
/** How long a client may stop reading a complete response before the connection is closed. */
const STALL_MS = 60_000
/** Maximum number of open files other than connections and their files. Loading a library opens hundreds at once. */
const OTHER_FILES = 600
/**
 * Memory of a container per connection, in bytes. One whose client sends 64 KB of a list and stops takes half of that; without
 * the other half, the system evicts the code of Node.
 */
const CONNECTION_BYTES = 256 * 1024
/**
 * Buffer size of a message. Bytes, as many as arrive at once. The first part of a body arrives with the headers, before it is
 * read. With a smaller buffer, Node would pause and resume the socket for each request.
 */
const BUFFERED_BYTES = 64 * 1024
/** Interval of the looks for requests in progress during a shutdown. */
const LOOK_MS = 20
/** Minimum interval between log lines about rejected connections. */
const DROP_NOTE_MS = 60_000

export interface HttpServer {
  readonly server: Server
  /**
   * Stops listening, and waits until no request has been in progress for `quietMs`. Responses have `Connection: close`, so that
   * reverse proxies use other servers, and requests that still arrive on open connections are handled.
   *
   * @returns false if requests took longer than `graceMs` and were aborted
   */
  stop(graceMs: number, quietMs: number): Promise<boolean>
}

/**
 * Creates a server with its timeouts. `handle` gets every request, including those that expect 100 Continue.
 *
 * @param memory what the container has for requests, bytes
 */
export function createHttpServer(
  handle: RequestListener,
  note: NoteUnreadable,
  stallMs: number = STALL_MS,
  memory: number = memoryForRequests(),
): HttpServer {
  const server = createServer({
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: 5000,
    noDelay: true,
    highWaterMark: BUFFERED_BYTES,
    // The application rejects such requests itself, because Node's response has no body.
    requireHostHeader: false,
  })
  // By default, Node silently drops headers beyond a count, which may include forwarding headers. The total size stays limited.
  server.maxHeadersCount = 0
  const connections = new Map<Duplex, Connection>()
  const turnAwayBeyondLimit = createConnectionLimit(note, memory)
  server.on('connection', (socket: Socket) => {
    // Node keeps the address. Once the client has reset the connection, it can't be read, and its wrong keys would count for no client.
    void socket.remoteAddress
    connections.set(socket, parseOneByOne(socket))
    socket.once('close', () => connections.delete(socket))
    turnAwayBeyondLimit(socket, connections.size)
  })
  let isStopping = false
  const accept: RequestListener = (req, res) => {
    const { socket } = req
    const connection = connections.get(socket)
    if (!connection || socket.destroyed) return
    if (isStopping) res.shouldKeepAlive = false
    const exchange = { req, res }
    connection.current = exchange
    const finish = () => {
      if (connection.current !== exchange) return
      connection.current = undefined
      connection.parseNext()
    }
    res.on('close', () => (req.complete || req.destroyed ? finish() : req.once('end', finish)))
    // This timeout applies until the connection is idle, when Node sets its keep-alive timeout.
    res.on('prefinish', () => {
      if (socket.writableLength > 0) socket.setTimeout(stallMs)
    })
    drainAfterResponse(req, res)
    handle(req, res)
  }
  server.on('request', accept)
  // routes/body.ts sends 100 Continue only when the body is needed. Node would reject other expectations with an empty body.
  server.on('checkContinue', accept)
  server.on('checkExpectation', accept)
  server.on('clientError', (error: Unreadable, socket) => {
    const current = connections.get(socket)?.current
    // A response written now would end up inside another response.
    if (current?.res.headersSent) socket.destroy()
    // The log line of the request that was cut says so.
    else answerUnreadable(error, socket, isCut(error) && current ? () => {} : note)
  })
  return {
    server,
    async stop(graceMs, quietMs) {
      const closed = once(server, 'close')
      const end = performance.now() + graceMs
      // Responses don't close their connections before, or reverse proxies would open new ones.
      await closeListener(server)
      isStopping = true
      for (const { current } of connections.values()) if (current) current.res.shouldKeepAlive = false
      const finished = await drain(connections, end, quietMs)
      for (const [socket, { current }] of connections) {
        if (current) current.res.err ??= cutByShutdown()
        socket.destroy()
      }
      await closed
      server.close() // This stops Node's timer for header timeouts.
      return finished
    },
  }
}

/**
 * Limits the number of connections, so that enough files can be opened for everything else, and a container has enough memory.
 * Each connection may have an open file of its own. A module that fails to load for lack of files can't be loaded later either.
 */
function createConnectionLimit(note: NoteUnreadable, memory: number): (socket: Socket, open: number) => void {
  const files = mostOpenFiles()
  const byFiles = Math.floor((files - Math.min(OTHER_FILES, files / 2)) / 2)
  const byMemory = Math.floor(memory / CONNECTION_BYTES)
  const most = Math.min(byFiles, byMemory)
  const reason =
    byFiles < byMemory
      ? `The process may have ${files} open files: raise that limit (ulimit -n)`
      : 'The container has little memory: give it more'
  let notedAt = -DROP_NOTE_MS
  return (socket, open) => {
    if (open <= most) return
    const address = socket.remoteAddress
    socket.destroy()
    if (performance.now() - notedAt < DROP_NOTE_MS) return
    notedAt = performance.now()
    const message = `More than ${most} connections are open, so new ones are closed. ${reason}, or limit connections in the reverse proxy`
    note(crypto.randomUUID(), 503, message, address)
  }
}

/** The limit of open files, which Node has raised to its maximum; Infinity on systems without `/proc`. */
function mostOpenFiles(): number {
  try {
    const [, files] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return Number(files ?? Infinity)
  } catch {
    return Infinity
  }
}

/** Maximum number of turns of the event loop in which queued connections are accepted. */
const MOST_TURNS = 1000

/**
 * Stops listening when a turn of the event loop has brought no connection. The system resets those that it has queued, to which a
 * reverse proxy may have sent a request that it can't send again. Node accepts one in each turn.
 *
 * Open connections stay open. The `close` of HTTP servers would also close idle ones, on which a client may be sending.
 */
export async function closeListener(server: NetServer): Promise<void> {
  let quiet = 0
  const noteConnection = () => {
    quiet = 0
  }
  server.on('connection', noteConnection)
  for (let turns = 0; quiet < 2 && turns < MOST_TURNS; turns++) {
    quiet++
    await nextTurn()
  }
  server.off('connection', noteConnection)
  NetServer.prototype.close.call(server)
}

/** Why a request fails that the end of the shutdown aborts. */
function cutByShutdown(): UploadError {
  const message = 'The server shut down before the request was complete. Send it again.'
  return new UploadError('shutting_down', message)
}

/** Waits until no request has been in progress for `quietMs`. @returns false if one still is at `end` */
async function drain(
  connections: ReadonlyMap<Duplex, Connection>,
  end: number,
  quietMs: number,
): Promise<boolean> {
  const isBusy = () => [...connections.values()].some(({ current }) => current !== undefined)
  // Without connections, no request can arrive. The looks are counted instead of the time: while the process is blocked,
  // requests may have arrived that it has not read yet.
  for (let quiet = 0; connections.size > 0 && performance.now() < end; quiet += LOOK_MS) {
    if (isBusy()) quiet = 0
    else if (quiet >= quietMs) break
    await sleep(LOOK_MS)
    await nextTurn() // Requests that have arrived since then are read before the next look.
  }
  return !isBusy()
}

/** Discards the rest of the body after an early response, so that the client can read the response. */
function drainAfterResponse(req: IncomingMessage, res: ServerResponse): void {
  // Runs before Node's own listener, which closes the connection in both directions by `destroySoon`. Bytes that arrive
  // after that make the client's system discard the response. Node has no option for it, and reading the rest of the body
  // is not enough: of 20 clients that sent 30 MB, none got the response. With this, all did.
  res.prependOnceListener('finish', () => {
    if (req.complete || req.destroyed) return
    const { socket } = req
    const close = socket.destroySoon
    socket.destroySoon = () => socket.end()
    const timer = setTimeout(() => socket.destroy(), LINGER_MS)
    const finish = () => {
      clearTimeout(timer)
      socket.destroySoon = close
      if (socket.writableEnded) socket.destroySoon()
    }
    req
      .once('end', finish)
      .once('close', finish)
      .on('error', () => {})
    req.resume()
  })
}
