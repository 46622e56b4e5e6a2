import { once } from 'node:events'
import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import { orAborted } from '../../flow/cancellation.ts'
import { within } from '../../flow/time-limit.ts'
import type { Reference } from './references.ts'

/** reader-thread.ts as it is built: Node runs nothing else. */
const ENTRY = createRequire(import.meta.url).resolve('#note-reader')

/** Finds the references of notes. A note made up by somebody else may take the parser hours: it runs beside and is ended. */
export interface NoteReader {
  /** @throws Error for a note that takes too long, and when the signal is aborted */
  read(note: string): Promise<Reference[]>
  close(): Promise<void>
}

/**
 * @param signal ends what is under way, at once
 * @param timeoutMs for one note; a megabyte takes less than a second
 */
export function createNoteReader(signal: AbortSignal, timeoutMs = 10_000): NoteReader {
  let thread: Worker | undefined
  let last: Promise<unknown> = Promise.resolve()

  async function read(note: string): Promise<Reference[]> {
    signal.throwIfAborted()
    thread ??= new Worker(ENTRY)
    const current = thread
    const answered = new AbortController()
    const tooLong = () => new Error(`its Markdown could not be parsed within ${timeoutMs / 1000} s`)
    try {
      current.postMessage(note)
      // `once` fails with what ends the thread.
      const answer = once(current, 'message', { signal: answered.signal })
      const [found] = await orAborted(within(answer, timeoutMs, tooLong), signal)
      return found
    } catch (error) {
      thread = undefined
      await current.terminate()
      throw error
    } finally {
      answered.abort()
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
