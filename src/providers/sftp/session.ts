import type { Socket } from 'node:net'
import type { Client, SFTPWrapper } from 'ssh2'
import { createCanceller, onAbort } from '../../flow/cancellation.ts'
import { Problem } from '../../problem.ts'

/** Idle timeout of a connection, in milliseconds. */
const IDLE_MS = 60_000
/** Time limit for closing a connection gracefully, in milliseconds. */
const LINGER_MS = 2000
/** SSH_FX_OP_UNSUPPORTED (draft-ietf-secsh-filexfer-02, section 7). */
export const UNSUPPORTED = 8

type Done<T> = (error?: Error | null, value?: T) => void

/** A connection with an SFTP channel, which concurrent puts share. */
export interface SftpSession {
  /** Sends one request. Fails as soon as the connection is lost, with a retryable error. */
  call<T = void>(send: (sftp: SFTPWrapper, done: Done<T>) => void): Promise<T>
  /** Aborted when the session can't be used any more. */
  readonly ended: AbortSignal
  /** Closes the connection. Requests in flight fail. */
  end(): void
}

/** @param server name of the server in messages */
export function createSftpSession(
  client: Client,
  sftp: SFTPWrapper,
  socket: Socket,
  server: string,
): SftpSession {
  const ending = createCanceller()
  const { signal: ended } = ending
  let waiting = 0
  const idle = setTimeout(() => {
    if (waiting === 0) end('was not used')
  }, IDLE_MS).unref()

  function end(what: string, cause?: Error): void {
    if (ended.aborted) return
    clearTimeout(idle)
    client.end()
    socket.setTimeout(LINGER_MS, () => socket.destroy()).unref()
    ending.abort(new Problem(`${server} ${what}`, { cause, retryable: true }))
  }

  client.on('error', error => end('lost the connection', error))
  client.on('close', () => end('closed the connection'))
  sftp.on('error', (error: Error) => end('sent invalid SFTP data', error))
  sftp.on('end', () => end('ended the SFTP session'))

  function call<T>(send: (sftp: SFTPWrapper, done: Done<T>) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      waiting++
      const stopListening = onAbort(ended, () => reject(ended.reason))
      const done: Done<T> = (error, value) => {
        waiting--
        stopListening()
        if (!ended.aborted) idle.refresh()
        // When a channel ends, ssh2 rejects its requests before it reports the reason.
        if (error && !('code' in error)) setImmediate(() => reject(ended.aborted ? ended.reason : error))
        else if (error) reject(error)
        else resolve(value as T) // the cast is safe: without an error, ssh2 passes a value of the declared type
      }
      if (ended.aborted) return
      try {
        send(sftp, done)
      } catch (error) {
        // ssh2 throws if the server does not support an extension.
        done(Object.assign(new Error('not supported', { cause: error }), { code: UNSUPPORTED }))
      }
    })
  }

  return { call, ended, end: () => end('was left') }
}

/** One session for all puts of a destination, opened on demand, and again after it was lost. */
export function createConnection(open: (signal: AbortSignal) => Promise<SftpSession>) {
  const closing = new AbortController()
  let current: Promise<SftpSession> | undefined
  const forget = () => {
    current = undefined
  }
  return {
    get() {
      current ??= open(closing.signal).then(
        session => {
          onAbort(session.ended, forget)
          return session
        },
        error => {
          forget()
          throw error
        },
      )
      return current
    },
    close() {
      closing.abort()
      current?.then(session => session.end()).catch(() => {})
    },
  }
}
