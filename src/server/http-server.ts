import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import { Server as NetServer, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { drainAfterResponse, LINGER_MS } from '../routes/body.ts'
import { MESSAGE_TYPES } from '../routes/message-types.ts'

/** Time for the headers of a request; bodies are watched by `limits.bodyIdleMs`. */
const HEADERS_TIMEOUT_MS = 20_000
/** Longer than the idle time of common proxies, so that it is they who close a connection. */
const KEEP_ALIVE_MS = 65_000
/** How long nothing of a whole answer may be read before the connection is cut. */
const STALL_MS = 60_000
/** Most files that are open beside connections and theirs: loading a library opens hundreds at once. */
const OTHER_FILES = 600
/**
 * What a message may buffer, bytes: as much as arrives at once. The first part of a body comes with the headers, before
 * anybody reads it, and would otherwise have Node stop the socket and start it again for each request.
 */
const BUFFERED_BYTES = 64 * 1024
/** How often the log says that connections are turned away. */
const DROP_NOTE_MS = 60_000

export interface HttpServer {
  readonly server: Server
  /**
   * Stops listening and lets running requests finish.
   *
   * @returns false when they took longer than `graceMs` and were cut
   */
  stop(graceMs: number): Promise<boolean>
}

/** Hears of every request that never reaches `handle`. */
type NoteUnreadable = (id: string, status: number, message: string, address: string | undefined) => void

/** A server with its time limits set; `handle` gets every request, those that ask before they send a body included. */
export function createHttpServer(
  handle: RequestListener,
  note: NoteUnreadable,
  stallMs: number = STALL_MS,
): HttpServer {
  const server = createServer({
    ...MESSAGE_TYPES,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: 5000,
    noDelay: true,
    highWaterMark: BUFFERED_BYTES,
    // The application says so, in an answer that is not empty.
    requireHostHeader: false,
  })
  // Beyond a count Node drops headers without a word, forwarding headers among them; the total size stays limited.
  server.maxHeadersCount = 0
  // Open connections, each with the answers that are being given on it.
  const connections = new Map<Duplex, Set<ServerResponse>>()
  const turnAwayBeyondLimit = createConnectionLimit(note)
  // Ahead of Node's own listener, which reads from the socket.
  server.prependListener('connection', (socket: Socket) => {
    connections.set(socket, new Set())
    socket.once('close', () => connections.delete(socket))
    turnAwayBeyondLimit(socket, connections.size)
  })
  const takeTurn = createRequestTurns()
  const accept: RequestListener = (req, res) => {
    const running = connections.get(req.socket)?.add(res)
    const removeResponse = () => running?.delete(res)
    res.on('close', () =>
      req.complete || req.destroyed ? removeResponse() : req.once('end', removeResponse),
    )
    // Until the connection waits for its next request, when Node sets its own limit.
    res.on('prefinish', () => {
      if (req.socket.writableLength > 0) req.socket.setTimeout(stallMs)
    })
    takeTurn(req.socket, running?.size ?? 1, () => {
      drainAfterResponse(req, res)
      handle(req, res)
    })
  }
  server.on('request', accept)
  // The body is asked for only when it is wanted (routes/body.ts). Node would refuse other expectations without a body.
  server.on('checkContinue', accept)
  server.on('checkExpectation', accept)
  server.on('clientError', (error: Unreadable, socket) => {
    // What is written now would end up inside another answer.
    if ([...(connections.get(socket) ?? [])].some(res => res.headersSent)) socket.destroy()
    else answerUnreadable(error, socket, note)
  })
  return { server, stop: graceMs => stopServer(server, connections, graceMs) }
}

/**
 * A packet holds more than a thousand requests. Of those that a connection sends without waiting for answers one is begun
 * in each turn of the event loop, in order and as the answers are read, so that other connections have their turn.
 */
function createRequestTurns(): (socket: Duplex, running: number, begin: () => void) => void {
  const waiting = new WeakMap<Duplex, (() => void)[]>()

  function beginNext(socket: Duplex, queue: (() => void)[]): void {
    if (socket.destroyed) return
    if (socket.writableNeedDrain) {
      socket.once('drain', () => beginNext(socket, queue))
      return
    }
    queue.shift()?.()
    if (queue.length > 0) setImmediate(beginNext, socket, queue)
    else waiting.delete(socket)
  }

  return (socket, running, begin) => {
    const queue = waiting.get(socket)
    if (queue) queue.push(begin)
    else if (running <= 1) begin()
    else {
      const first = [begin]
      waiting.set(socket, first)
      setImmediate(beginNext, socket, first)
    }
  }
}

/**
 * Keeps enough open files for everything but connections, each of which may have a file of its own: what can't be loaded
 * for want of files can't be loaded later either.
 */
function createConnectionLimit(note: NoteUnreadable): (socket: Socket, open: number) => void {
  const files = mostOpenFiles()
  if (files === undefined) return () => {}
  const most = Math.floor((files - Math.min(OTHER_FILES, files / 2)) / 2)
  let notedAt = -DROP_NOTE_MS
  return (socket, open) => {
    if (open <= most) return
    const address = socket.remoteAddress
    socket.destroy()
    if (performance.now() - notedAt < DROP_NOTE_MS) return
    notedAt = performance.now()
    const message = `More than ${most} connections are open, so new ones are closed. The process may have ${files} open files: raise that limit (ulimit -n), or limit connections in the reverse proxy`
    note(crypto.randomUUID(), 503, message, address)
  }
}

/** Undefined where the system does not say; Node has raised the limit as far as it may. */
function mostOpenFiles(): number | undefined {
  try {
    const [, files] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return files === undefined ? undefined : Number(files)
  } catch {
    return undefined
  }
}

/** What Node says of a request it can't parse. */
type Unreadable = NodeJS.ErrnoException & { rawPacket?: Buffer }

/** Requests that Node can't parse never reach the application, and still get an answer of the contract. */
function answerUnreadable(error: Unreadable, socket: Duplex, note: NoteUnreadable): void {
  // Answered already: what still arrives is thrown away, so that the client gets to read the answer.
  if (socket.writableEnded) return
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const timeout = error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
  const status = timeout ? 408 : error.code === 'HPE_HEADER_OVERFLOW' ? 431 : 400
  const message = explainUnreadable(error)
  const code = timeout ? 'request_timeout' : 'invalid_request'
  const requestId = crypto.randomUUID()
  // Once all is written, the socket no longer knows it.
  const address = socket instanceof Socket ? socket.remoteAddress : undefined
  const body = JSON.stringify({
    success: false,
    message,
    msg: message,
    code,
    requestId,
    errors: [],
  })
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json; charset=utf-8\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nAccess-Control-Allow-Origin: *\r\nX-Request-Id: ${requestId}\r\n` +
      `Connection: close\r\n\r\n${body}`,
  )
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
  note(requestId, status, message, address)
}

/** The first byte of a client that speaks TLS (RFC 8446 section 5.1). */
const TLS_HANDSHAKE = 0x16

function explainUnreadable({ code, rawPacket }: Unreadable): string {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'The request headers did not arrive in time.'
  if (code === 'HPE_HEADER_OVERFLOW') return 'The request headers are too large.'
  if (code === 'HPE_INVALID_URL')
    return 'The URL of the request contains a character that must be percent-encoded, such as a non-ASCII letter.'
  if (rawPacket?.[0] === TLS_HANDSHAKE)
    return 'The client sent an HTTPS request, but this server accepts plain HTTP. Use http instead of https, or terminate TLS in a reverse proxy.'
  return 'The request is not valid HTTP.'
}

async function stopServer(
  server: Server,
  connections: ReadonlyMap<Duplex, ReadonlySet<ServerResponse>>,
  graceMs: number,
): Promise<boolean> {
  const closed = once(server, 'close')
  // Not the `close` of HTTP servers: it also cuts idle connections, on which a client may be sending its next request.
  NetServer.prototype.close.call(server)
  const isBusy = () => [...connections.values()].some(running => running.size > 0)
  const end = performance.now() + graceMs
  while (isBusy() && performance.now() < end) await sleep(20)
  const finished = !isBusy()
  for (const socket of connections.keys()) socket.destroy()
  await closed
  server.close() // ends Node's watch over header time-outs
  return finished
}
