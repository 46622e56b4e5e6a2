import type { Entry } from '../entries.ts'
import { interruption, type Result } from '../result.ts'

/** The defaults of `upload`: number of parallel requests, and how long transient failures are retried, in milliseconds. */
export const SENDING = { concurrency: 4, retryMaxTime: 5 * 60_000 }

/** Receives the progress of an upload. */
export interface Listener {
  /** Called once for each entry, in any order. */
  settle(index: number, result: Result): void
  /** Called when files are uploaded whose results follow, with their number. */
  stored?(count: number): void
  /** Called when a transient failure begins and requests are retried. */
  retrying?(message: string): void
  /** Called when these entries are stored and one of their post-upload steps failed. */
  unfinished?(indexes: readonly number[], finalizationId: string, problem: string): void
}

/**
 * Uploads entries. The sender for a running server is in `send.ts`. The sender that uploads in this process is in
 * `src/cli/upload-here.ts` and is passed in, so that the client does not load the server's modules.
 */
export interface Sender {
  send(entries: readonly Entry[], signal: AbortSignal, listener: Listener): Promise<void>
  /** Why the links don't work now, as the end of a sentence. Undefined if no such reason is known. */
  explainUnreachable(): Promise<string | undefined>
}

/** The outcome of all entries. */
export interface Sent {
  /** For each entry, in order. */
  readonly results: readonly Result[]
  /** Uploads whose post-upload steps failed. */
  readonly unfinished: readonly { readonly id: string; readonly problem?: string }[]
}

/** Sends entries and waits for all of them. */
export async function sendAll(sender: Sender, entries: readonly Entry[], signal: AbortSignal): Promise<Sent> {
  const results = entries.map(({ name }) => interruption(name))
  const unfinished = new Map<string, { id: string; problem?: string }>()
  if (entries.length > 0 && !signal.aborted)
    await sender.send(entries, signal, {
      settle(index, result) {
        results[index] = result
        const id = result.finalizationId
        if (id !== undefined) unfinished.set(id, { id })
      },
      unfinished: (_, id, problem) => void unfinished.set(id, { id, problem }),
    })
  return { results, unfinished: [...unfinished.values()] }
}
