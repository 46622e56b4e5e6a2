import type { Socket } from 'node:net'
import type { Client, SFTPWrapper } from 'ssh2'
import { Problem } from '../../problem.ts'

/** Idle timeout of a connection, in milliseconds. */
const IDLE_MS = 60_000
/** Time without a response after which an aborted put closes the connection, in milliseconds. */
const UNRESPONSIVE_MS = 10_000
/** Time limit for closing a connection gracefully, in milliseconds. */
const LINGER_MS = 2000
/** SSH_FX_OP_UNSUPPORTED (draft-ietf-secsh-filexfer-02, section 7). */
export const UNSUPPORTED = 8

type Done<T> = (error?: Error | null, value?: T) => void

/** A connection with an SFTP channel, which concurrent puts share. */
export interface SftpSession {
  /** Sends one request. Fails as soon as the connection is lost, with a retryable error. */
  call<T = void>(send: (sftp: SFTPWrapper, done: Done<T>) => void): Promise<T>
  /** Call it when a put was aborted. Closes a connection that does not respond, so that the next put opens another one. */
  closeIfUnresponsive(): void
  /** Closes the connection. Requests in flight fail. */
  end(): void
}

/**
 * @param server name of the server in messages
 * @param onLost called once, when the session can't be used any more
 */
export function createSftpSession(
  { client, sftp, socket }: { client: Client; sftp: SFTPWrapper; socket: Socket },
  server: string,
  onLost: () => void,
): SftpSession {
  const waiting = new Set<(reason: Problem) => void>()
  let lost: Problem | undefined
  let heardAt = Date.now()

  function lose(what: string, cause?: Error): void {
    if (lost) return
    lost = new Problem(`${server} ${what}`, { cause, retryable: true })
    client.end()
    socket.setTimeout(LINGER_MS, () => socket.destroy()).unref()
    onLost()
    for (const reject of waiting) reject(lost)
    waiting.clear()
  }

  client.on('error', error => lose('lost the connection', error))
  client.on('close', () => lose('closed the connection'))
  sftp.on('error', (error: Error) => lose('sent invalid SFTP data', error))
  sftp.on('end', () => lose('ended the SFTP session'))
  // A put that waits has a time limit of its own.
  socket.setTimeout(IDLE_MS).on('timeout', () => {
    if (waiting.size === 0) lose('was not used')
  })

  function call<T>(send: (sftp: SFTPWrapper, done: Done<T>) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      if (lost) return reject(lost)
      const done: Done<T> = (error, value) => {
        waiting.delete(reject)
        heardAt = Date.now()
        // When a channel ends, ssh2 rejects its requests before it reports the reason.
        if (error && !('code' in error)) setImmediate(() => reject(lost ?? error))
        else if (error) reject(error)
        else resolve(value as T) // the cast is safe: without an error, ssh2 passes a value of the declared type
      }
      if (waiting.size === 0) heardAt = Date.now()
      waiting.add(reject)
      try {
        send(sftp, done)
      } catch (error) {
        // ssh2 throws if the server does not support an extension.
        done(Object.assign(new Error('not supported', { cause: error }), { code: UNSUPPORTED }))
      }
    })
  }

  return {
    call,
    closeIfUnresponsive() {
      if (waiting.size > 0 && Date.now() - heardAt >= UNRESPONSIVE_MS)
        lose(`did not respond for ${UNRESPONSIVE_MS / 1000} s`)
    },
    end: () => lose('was left'),
  }
}

/**
 * One session for all puts of a destination, opened on demand, and again after it was lost.
 *
 * @param open gets a function that it must call when its session can't be used any more
 */
export function createConnection(open: (onLost: () => void, signal: AbortSignal) => Promise<SftpSession>) {
  const closing = new AbortController()
  let current: Promise<SftpSession> | undefined
  const forget = () => {
    current = undefined
  }
  return {
    get() {
      current ??= open(forget, closing.signal).catch(error => {
        forget()
        throw error
      })
      return current
    },
    close() {
      closing.abort()
      current?.then(session => session.end()).catch(() => {})
    },
  }
}
