import { STATUS_CODES } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** How long an unread body is discarded after an early response, before the connection is closed. */
export const LINGER_MS = 5000

/** Is called for every request that never reaches `handle`. */
export type NoteUnreadable = (
  id: string,
  status: number,
  message: string,
  address: string | undefined,
) => void

/** Node's error for a request that it can't parse. */
export type Unreadable = NodeJS.ErrnoException & { rawPacket?: Buffer }

/** Sends the JSON response of the API for requests that Node can't parse and so never reach the application. */
export function answerUnreadable(error: Unreadable, socket: Duplex, note: NoteUnreadable): void {
  // The response has been sent. Data that still arrives is discarded, so that the client can read the response.
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
  // The address must be read now, because the socket loses it once everything is written.
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

/** The first byte of a TLS handshake (RFC 8446 section 5.1). */
const TLS_HANDSHAKE = 0x16

/** Whether the client closed the connection in the middle of a request. */
export const isCut = ({ code }: Unreadable) => code === 'HPE_INVALID_EOF_STATE'

function explainUnreadable(error: Unreadable): string {
  const { code, rawPacket } = error
  if (isCut(error)) return 'The client closed the connection before its request was complete.'
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'The request headers did not arrive in time.'
  if (code === 'HPE_HEADER_OVERFLOW') return 'The request headers are too large.'
  if (code === 'HPE_INVALID_URL')
    return 'The URL of the request contains a character that must be percent-encoded, such as a non-ASCII letter.'
  if (rawPacket?.[0] === TLS_HANDSHAKE)
    return 'The client sent an HTTPS request, but this server accepts plain HTTP. Use http instead of https, or terminate TLS in a reverse proxy.'
  return 'The request is not valid HTTP.'
}
