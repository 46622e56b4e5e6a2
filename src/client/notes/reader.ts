import { once } from 'node:events'
import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import { orAborted } from '../../flow/cancellation.ts'
import { within } from '../../flow/time-limit.ts'
import type { Reference } from './references.ts'

/** The built form of reader-thread.ts, because Node runs no TypeScript in a worker thread. */
const ENTRY = createRequire(import.meta.url).resolve('#note-reader')

/**
 * Finds the references of notes in a worker thread. A malicious note could block the parser for hours, and a thread can be
 * terminated.
 */
export interface NoteReader {
  /** @throws Error if the note takes too long or the signal is aborted */
  read(note: string): Promise<Reference[]>
  close(): Promise<void>
}

/**
 * @param signal aborts the note in progress
 * @param timeoutMs time limit of one note; 1 MB takes less than a second
 */
export function createNoteReader(signal: AbortSignal, timeoutMs = 10_000): NoteReader {
  let thread: Worker | undefined
  let last: Promise<unknown> = Promise.resolve()

  async function read(note: string): Promise<Reference[]> {
    signal.throwIfAborted()
    thread ??= new Worker(ENTRY)
    const current = thread
    const responded = new AbortController()
    const tooLong = () => new Error(`its Markdown could not be parsed within ${timeoutMs / 1000} s`)
    try {
      current.postMessage(note)
      // `once` rejects with the error that ends the thread.
      const response = once(current, 'message', { signal: responded.signal })
      const [found] = await orAborted(within(response, timeoutMs, tooLong), signal)
      return found
    } catch (error) {
      thread = undefined
      await current.terminate()
      throw error
    } finally {
      responded.abort()
    }
  }

  return {
    read(note) {
      const result = last.then(() => read(note))
      last = result.catch(() => {})
      return result
    },
    async close() {
      await thread?.terminate()
    },
  }
}
