import type { SftpSession } from './session.ts'

/** One session for all puts of a destination: made when it is first needed, and again after it was lost. */
export interface Connection {
  get(): Promise<SftpSession>
  close(): void
}

/** @param open gets a function to call when the session it has made cannot be used any more */
export function createConnection(
  open: (onLost: () => void, signal: AbortSignal) => Promise<SftpSession>,
): Connection {
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
