import { EventEmitter, once } from 'node:events'
import { onAbort } from '../../flow/cancellation.ts'
import { createSlots } from '../../flow/slots.ts'
import { responseCode } from '../shared/file-tree.ts'
import type { FtpConnection } from './files.ts'

/** Idle timeout of a connection, in milliseconds. */
const IDLE_MS = 30_000

/** Reply codes for too many connections (RFC 959, section 4.2). 530 also means a wrong password. */
const TOO_MANY = new Set([421, 530])

/**
 * Connections of one destination. Each runs one task at a time.
 *
 * @param size maximum number of connections. Fewer are opened if the server accepts fewer
 */
export function createPool(size: number, open: (signal: AbortSignal) => Promise<FtpConnection>) {
  const slots = createSlots(size, Number.POSITIVE_INFINITY)
  const closing = new AbortController()
  /** Idle connections with their timers. The one that was used last is the last one. */
  const idle = new Map<FtpConnection, NodeJS.Timeout>()
  const changes = new EventEmitter<{ change: [] }>().setMaxListeners(size)
  /** Number of connections that are logged in. */
  let count = 0
  let opening = 0
  /** Number of connections that the server accepts. It is reset to `size` when all are closed. */
  let limit = size

  function end(connection: FtpConnection): void {
    connection.client.close()
    count--
    if (count === 0) limit = size
    changes.emit('change')
  }

  function keep(connection: FtpConnection): void {
    if (closing.signal.aborted) {
      end(connection)
      return
    }
    const endIdle = () => {
      idle.delete(connection)
      end(connection)
    }
    idle.set(connection, setTimeout(endIdle, IDLE_MS).unref())
    changes.emit('change')
  }

  /** Returns the idle connection that the server is least likely to have closed. */
  function takeIdle(): FtpConnection | undefined {
    for (const connection of [...idle.keys()].reverse()) {
      clearTimeout(idle.get(connection))
      idle.delete(connection)
      if (!connection.client.closed) return connection
      end(connection)
    }
    return undefined
  }

  async function take(signal: AbortSignal): Promise<FtpConnection> {
    for (;;) {
      const connection = takeIdle()
      if (connection) return connection
      // The first connection is opened alone, so that a wrong password is not tried several times at once.
      if (count + opening < (count === 0 ? 1 : limit)) {
        const opened = await tryOpen(signal)
        if (opened) return opened
      } else await once(changes, 'change', { signal })
    }
  }

  /** Opens a connection. Returns undefined if the server accepts no more than are open. */
  async function tryOpen(signal: AbortSignal): Promise<FtpConnection | undefined> {
    opening++
    try {
      const connection = await open(signal)
      count++
      return connection
    } catch (error) {
      // If other connections are logged in with the same password, it is correct.
      if (count === 0 || !TOO_MANY.has(responseCode(error instanceof Error && error.cause) ?? 0)) throw error
      limit = count
      return undefined
    } finally {
      opening--
      changes.emit('change')
    }
  }

  async function useOne<T>(work: (connection: FtpConnection) => Promise<T>, signal: AbortSignal): Promise<T> {
    const connection = await take(signal)
    const stopListening = onAbort(signal, () => connection.client.close())
    try {
      signal.throwIfAborted()
      const result = await work(connection)
      keep(connection)
      return result
    } catch (error) {
      end(connection)
      throw error
    } finally {
      stopListening()
    }
  }

  return {
    /** Waits for a connection. If the work fails or its signal is aborted, the connection is closed. */
    use<T>(work: (connection: FtpConnection) => Promise<T>, signal: AbortSignal): Promise<T> {
      const either = AbortSignal.any([signal, closing.signal])
      return slots.run(() => useOne(work, either), either)
    },
    close() {
      closing.abort()
      for (let connection = takeIdle(); connection; connection = takeIdle()) end(connection)
    },
  }
}
