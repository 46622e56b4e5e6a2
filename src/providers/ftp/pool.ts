import { createCanceller, onAbort } from '../../flow/cancellation.ts'
import { createSlots } from '../../flow/slots.ts'
import { responseCode } from '../shared/file-tree.ts'
import type { FtpConnection } from './connect.ts'

/** Time without work after which idle connections are closed, in milliseconds. */
const IDLE_MS = 30_000

/** Reply codes for too many connections (RFC 959, section 4.2). 530 also means a wrong password. */
const TOO_MANY = new Set([421, 530])

/**
 * Connections of one destination. Each runs one task at a time.
 *
 * @param size maximum number of connections. Fewer are opened if the server accepts fewer
 */
export function createPool(size: number, logIn: (signal: AbortSignal) => Promise<FtpConnection>) {
  const closing = createCanceller()
  /** Connections that are logged in. */
  const open = new Set<FtpConnection>()
  /** Those without a task. The one that was used last is the last one. */
  const idle: FtpConnection[] = []
  // The first connection is opened alone, so that a wrong password is not tried several times at once.
  const tasks = createSlots(1, Number.POSITIVE_INFINITY)
  const allow = (connections: number) => tasks.resize(connections, Number.POSITIVE_INFINITY)
  const idleTimer = setTimeout(endIdle, IDLE_MS).unref()

  function end(connection: FtpConnection): void {
    connection.client.close()
    open.delete(connection)
    if (open.size === 0) allow(1)
  }

  function endIdle(): void {
    for (const connection of idle.splice(0)) end(connection)
  }

  /** Returns a connection, or undefined if the server accepts no more than are open. */
  async function take(signal: AbortSignal): Promise<FtpConnection | undefined> {
    for (let connection = idle.pop(); connection; connection = idle.pop()) {
      if (!connection.client.closed) return connection
      end(connection)
    }
    try {
      const connection = await logIn(signal)
      open.add(connection)
      if (open.size === 1) allow(size)
      return connection
    } catch (error) {
      // If other connections are logged in with the same password, it is correct.
      if (open.size === 0 || !TOO_MANY.has(responseCode(error instanceof Error && error.cause) ?? 0))
        throw error
      allow(open.size)
      return undefined
    }
  }

  async function runTask<T>(work: (connection: FtpConnection) => Promise<T>, signal: AbortSignal) {
    const connection = await take(signal)
    if (!connection) return undefined
    const stopListening = onAbort(signal, () => connection.client.close())
    try {
      signal.throwIfAborted()
      const result = await work(connection)
      idle.push(connection)
      idleTimer.refresh()
      if (closing.signal.aborted) endIdle()
      return { result }
    } catch (error) {
      end(connection)
      throw error
    } finally {
      stopListening()
    }
  }

  return {
    /** Waits for a connection. If the work fails or its signal is aborted, the connection is closed. */
    async use<T>(work: (connection: FtpConnection) => Promise<T>, signal: AbortSignal): Promise<T> {
      const either = createCanceller() // not AbortSignal.any, see cancellation.ts
      const stops = [signal, closing.signal].map(one => onAbort(one, () => either.abort(one.reason)))
      try {
        for (;;) {
          const done = await tasks.run(() => runTask(work, either.signal), either.signal)
          if (done) return done.result
        }
      } finally {
        for (const stop of stops) stop()
      }
    },
    close() {
      closing.abort()
      endIdle()
    },
  }
}
