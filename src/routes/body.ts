import type { Request, Response } from 'express'
import { UploadError } from '../errors.ts'
import type { Payloads } from '../payload/index.ts'
import type { Spool } from '../payload/spool.ts'
import type { Input } from '../uploader/input.ts'

export interface BodyOptions {
  readonly payloads: Payloads
  readonly spool: Spool
  readonly limits: {
    /** Maximum size of one file. Bytes. */
    readonly fileSize: number
    /** Maximum number of files. */
    readonly files: number
    /** Maximum size of a list. Bytes. */
    readonly jsonBody: number
    /** Idle timeout of the body. Milliseconds. */
    readonly bodyIdleMs: number
  }
  /** Gets the name of each file of a form when it begins to arrive. */
  readonly underWay: string[]
}

/** Contents of a body. */
export interface Received {
  readonly inputs: readonly Input[]
  /** Text fields of a form that are options of the request. */
  readonly fields?: readonly (readonly [name: string, text: string])[]
  /** Gives back the memory of a list. */
  release?(): void
}

/**
 * Fewer bytes than this in one period count as idle. Otherwise, a client that sends a byte per second could hold a
 * connection forever.
 */
const LEAST_BYTES = 1024

/** Sends 100 Continue if the client expects it (RFC 9110 section 10.1.1). */
export function sendContinue(req: Request, res: Response): void {
  const waits = req.headers.expect?.toLowerCase() === '100-continue' && req.httpVersion !== '1.0'
  if (waits) res.writeContinue()
}

/**
 * Enforces the idle timeout of a body while it arrives.
 *
 * @param idleMs period in which bytes must arrive. Time in which the server itself is slower than the client doesn't count
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
    if (received >= LEAST_BYTES || req.readableLength > 0) return
    clearInterval(timer)
    onStall(
      new UploadError(
        'request_timeout',
        `The client sent no data for ${idleMs / 1000} s (limits.bodyIdle). Check the connection.`,
      ),
    )
  }, idleMs)
  return () => clearInterval(timer)
}

/** The error of an incomplete body. Usually the client is gone and doesn't read it. */
export function cutOff(): UploadError {
  return new UploadError('invalid_request', 'The connection was closed before the body was complete.')
}
