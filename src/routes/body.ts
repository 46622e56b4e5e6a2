import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Request, Response } from 'express'
import { UploadError } from '../errors.ts'
import type { ListShare } from './list-memory.ts'

/**
 * Fewer bytes than this on the connection in one period count as standing still: a client that sends a byte a second
 * never ends.
 */
const LEAST_BYTES = 1024

/** How long an unread body is thrown away after an early answer, before the connection is cut. */
export const LINGER_MS = 5000

/** Asks the client for its body when it waits to be asked (RFC 9110 section 10.1.1). */
export function invite(req: Request, res: Response): void {
  const waits = req.headers.expect?.toLowerCase() === '100-continue' && req.httpVersion !== '1.0'
  if (waits) res.writeContinue()
}

/**
 * Watches a body that is being read. Once all of it has arrived, what takes time is not the client.
 *
 * @param idleMs period in which something must arrive; time in which the server itself makes the client wait is free
 * @param onStall called once, with `request_timeout`
 * @returns ends the watch
 */
export function watchBody(req: Request, idleMs: number, onStall: (error: UploadError) => void): () => void {
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
        `The body stopped arriving for ${idleMs / 1000} s (limits.bodyIdleMs).`,
      ),
    )
  }, idleMs)
  return () => clearInterval(timer)
}

/**
 * Collects a body.
 *
 * @param share counts what it takes, and may refuse it
 * @throws UploadError `too_large`, `request_timeout`, `invalid_request` when it is cut off or encoded
 */
export function readBody(req: Request, limit: number, idleMs: number, share: ListShare): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const stop = watchBody(req, idleMs, error => end(() => reject(error)))
    const collect = (chunk: Buffer) => {
      size += chunk.length
      chunks.push(chunk)
      try {
        if (size > limit) throw tooLargeBody(limit)
        share.take(chunk.length)
      } catch (error) {
        end(() => reject(error))
      }
    }
    const finish = () => end(() => resolve(Buffer.concat(chunks)))
    const cut = () => end(() => reject(cutOff()))
    const end = (settle: () => void) => {
      stop()
      req.off('data', collect).off('end', finish).off('close', cut).off('error', cut)
      settle()
    }
    req.on('data', collect).on('end', finish).on('close', cut).on('error', cut)
  })
}

/** The body ended before it was complete; usually nobody is left to read this. */
export function cutOff(): UploadError {
  return new UploadError('invalid_request', 'The connection was closed before the body was complete.')
}

/** The error of a list over `limits.jsonBody`. */
export function tooLargeBody(limit: number): UploadError {
  return new UploadError(
    'too_large',
    `The JSON body is larger than ${limit} bytes (limits.jsonBody). Send files in a form instead of naming them inside JSON.`,
  )
}

/** After an answer that came before the body was read: throw the rest away, so that the client gets to read the answer. */
export function drainAfterAnswer(req: IncomingMessage, res: ServerResponse): void {
  // Ahead of Node's own listener: behind a last answer it closes the connection in both directions, and bytes that
  // arrive after that make the client's machine throw the answer away.
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
