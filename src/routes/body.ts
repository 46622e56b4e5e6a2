import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Request, Response } from 'express'
import { UploadError } from '../errors.ts'

/**
 * Fewer bytes than this in one period count as idle. Otherwise, a client that sends a byte per second could hold a
 * connection forever.
 */
const LEAST_BYTES = 1024

/** How long an unread body is discarded after an early response, before the connection is closed. */
export const LINGER_MS = 5000

/** Sends 100 Continue if the client expects it (RFC 9110 section 10.1.1). */
export function sendContinue(req: Request, res: Response): void {
  const waits = req.headers.expect?.toLowerCase() === '100-continue' && req.httpVersion !== '1.0'
  if (waits) res.writeContinue()
}

/**
 * Enforces the idle timeout of a body while it arrives.
 *
 * @param idleMs period in which bytes must arrive. Time in which the server itself pauses the client doesn't count
 * @param onStall called once, with `request_timeout`
 * @returns stops the timeout
 */
export function watchBody(req: Request, idleMs: number, onStall: (error: UploadError) => void): () => void {
  if (req.complete) return () => {}
  const { socket } = req
  let before = socket.bytesRead
  const timer = setInterval(() => {
    if (req.complete) {
      clearInterval(timer)
      return
    }
    const received = socket.bytesRead - before
    before += received
    if (received >= LEAST_BYTES || req.isPaused()) return
    clearInterval(timer)
    onStall(
      new UploadError(
        'request_timeout',
        `The client sent no data for ${idleMs / 1000} s (limits.bodyIdleMs). Check the connection.`,
      ),
    )
  }, idleMs)
  return () => clearInterval(timer)
}

/** The error of an incomplete body. Usually the client is gone and doesn't read it. */
export function cutOff(): UploadError {
  return new UploadError('invalid_request', 'The connection was closed before the body was complete.')
}

/** The error of a JSON body over `limits.jsonBody`. */
export function tooLargeBody(limit: number): UploadError {
  return new UploadError(
    'too_large',
    `The JSON body is larger than ${limit} bytes (limits.jsonBody). Send the files in a form instead.`,
  )
}

/** Discards the rest of the body after an early response, so that the client can read the response. */
export function drainAfterResponse(req: IncomingMessage, res: ServerResponse): void {
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
