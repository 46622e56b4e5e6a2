import { EventEmitter, once } from 'node:events'
import { onAbort } from '../../flow/cancellation.ts'
import { createSlots } from '../../flow/slots.ts'
import type { FtpConnection } from './connect.ts'
import { replyCode } from './explain.ts'

/** A connection that is not used for so long is closed. */
const IDLE_MS = 30_000

/** How servers say "too many connections" (RFC 959, section 4.2); 530 is also said of a wrong password. */
const TOO_MANY = new Set([421, 530])

/** A few connections of one destination, each for one thing at a time. */
export interface Pool {
  /** Waits for a connection. When the work fails or its signal is aborted, the connection is not used again. */
  use<T>(work: (connection: FtpConnection) => Promise<T>, signal: AbortSignal): Promise<T>
  close(): void
}

/** @param size how many connections may be open at once; fewer when the server does not let so many in */
export function createPool(size: number, open: (signal: AbortSignal) => Promise<FtpConnection>): Pool {
  const slots = createSlots(size, Number.POSITIVE_INFINITY)
  const closing = new AbortController()
  const idle = createIdle(end)
  const changes = new EventEmitter<{ change: [] }>().setMaxListeners(size)
  /** Connections that are logged in. */
  let count = 0
  let opening = 0
  /** As many as the server has let in; unknown again once all are closed. */
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
    idle.keep(connection)
    changes.emit('change')
  }

  async function take(signal: AbortSignal): Promise<FtpConnection> {
    for (;;) {
      const connection = idle.take()
      if (connection) return connection
      // While nobody is in, one goes first: so a wrong password is tried once for each use, never several times at once.
      if (count + opening < (count === 0 ? 1 : limit)) {
        const opened = await tryOpen(signal)
        if (opened) return opened
      } else await once(changes, 'change', { signal })
    }
  }

  /** Undefined when the server lets in no more than those who are in. */
  async function tryOpen(signal: AbortSignal): Promise<FtpConnection | undefined> {
    opening++
    try {
      const connection = await open(signal)
      count++
      return connection
    } catch (error) {
      const code = error instanceof Error ? replyCode(error.cause) : undefined
      // They got in with the same password, so it is no wrong one.
      if (count === 0 || !TOO_MANY.has(code ?? 0)) throw error
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
    use: (work, signal) => {
      const either = AbortSignal.any([signal, closing.signal])
      return slots.run(() => useOne(work, either), either)
    },
    close() {
      closing.abort()
      for (let connection = idle.take(); connection; connection = idle.take()) end(connection)
    },
  }
}

/** Connections that are not used. @param end closes one that the server has closed, or that has waited for too long */
function createIdle(end: (connection: FtpConnection) => void) {
  const idle: { connection: FtpConnection; timer: NodeJS.Timeout }[] = []
  return {
    keep(connection: FtpConnection): void {
      const timer = setTimeout(() => {
        const index = idle.findIndex(one => one.connection === connection)
        idle.splice(index, 1)
        end(connection)
      }, IDLE_MS).unref()
      idle.push({ connection, timer })
    },
    /** The one used last, which is the least likely to have been closed by the server. */
    take(): FtpConnection | undefined {
      for (let last = idle.pop(); last; last = idle.pop()) {
        clearTimeout(last.timer)
        if (!last.connection.client.closed) return last.connection
        end(last.connection)
      }
      return undefined
    },
  }
}
