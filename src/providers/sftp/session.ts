import type { Socket } from 'node:net'
import type { Client, SFTPWrapper } from 'ssh2'
import { UploadError } from '../../errors.ts'

/** A connection that is not used for so long is closed. */
const IDLE_MS = 60_000
/** So long a server may leave requests without an answer: it may be writing a large file through to a slow disk. */
const SILENT_MS = 300_000
/** After so long without an answer, a put that is given up takes the connection with it. */
const DOUBT_MS = 10_000
/** How long a connection that is closed may take to say goodbye. */
const LINGER_MS = 2000
/** SSH_FX_OP_UNSUPPORTED (draft-ietf-secsh-filexfer-02, section 7). */
export const UNSUPPORTED = 8

type Done<T> = (error?: Error | null, value?: T) => void

/** A connection with an SFTP channel in it, used by several puts at once. */
export interface SftpSession {
  /** Sends one request. Fails, retryable, as soon as the connection is lost. */
  call<T = void>(send: (sftp: SFTPWrapper, done: Done<T>) => void): Promise<T>
  /** To be called when a put is given up: closes a connection that seems dead, so that the next put has another. */
  doubt(): void
  /** Closes the connection; requests under way fail. */
  end(): void
}

/**
 * @param server words for the server, for messages
 * @param onLost called once, when the session cannot be used any more
 */
export function createSftpSession(
  { client, sftp, socket }: { client: Client; sftp: SFTPWrapper; socket: Socket },
  server: string,
  onLost: () => void,
): SftpSession {
  const waiting = new Set<(reason: UploadError) => void>()
  let lost: UploadError | undefined
  let heardAt = Date.now()

  function lose(what: string, cause?: Error): void {
    if (lost) return
    lost = new UploadError('delivery_failed', `${server} ${what}. Try again.`, { cause, retryable: true })
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
  socket.setTimeout(IDLE_MS).on('timeout', () => {
    if (waiting.size === 0) lose('was not used')
    else if (!loseAfter(SILENT_MS)) socket.setTimeout(IDLE_MS)
  })

  /** @returns whether requests have waited for longer than that */
  function loseAfter(ms: number): boolean {
    const isSilent = waiting.size > 0 && Date.now() - heardAt >= ms
    if (isSilent) lose(`did not respond for ${ms / 1000} s`)
    return isSilent
  }

  function call<T>(send: (sftp: SFTPWrapper, done: Done<T>) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      if (lost) return reject(lost)
      const done: Done<T> = (error, value) => {
        waiting.delete(reject)
        heardAt = Date.now()
        // When a channel ends, ssh2 fails its requests before it tells anybody why.
        if (error && !('code' in error)) setImmediate(() => reject(lost ?? error))
        else if (error) reject(error)
        else resolve(value as T) // without an error ssh2 gives what it promises
      }
      if (waiting.size === 0) heardAt = Date.now()
      waiting.add(reject)
      try {
        send(sftp, done)
      } catch (error) {
        // So ssh2 does for an extension that the server lacks.
        done(Object.assign(new Error('not supported', { cause: error }), { code: UNSUPPORTED }))
      }
    })
  }

  return {
    call,
    doubt: () => void loseAfter(DOUBT_MS),
    end: () => lose('was left'),
  }
}

/** One session for all puts of a destination: made when it is first needed, and again after it was lost. */
export interface SftpConnection {
  get(): Promise<SftpSession>
  close(): void
}

/** @param open gets a function to call when the session it has made cannot be used any more */
export function createConnection(
  open: (onLost: () => void, signal: AbortSignal) => Promise<SftpSession>,
): SftpConnection {
  const closing = new AbortController()
  let current: Promise<SftpSession> | undefined

  async function make(): Promise<SftpSession> {
    const forget = () => {
      current = undefined
    }
    try {
      return await open(forget, closing.signal)
    } catch (error) {
      forget()
      throw error
    }
  }

  return {
    get() {
      current ??= make()
      return current
    },
    close() {
      closing.abort()
      void current?.then(
        session => session.end(),
        () => {},
      )
    },
  }
}
