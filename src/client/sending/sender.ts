import type { Entry } from '../entries.ts'
import { interruption, type Result } from '../result.ts'

/** What hears of what goes on. */
export interface Listener {
  /** Called once for each entry, in whatever order. */
  settle(index: number, result: Result): void
  /** Something that may pass has begun. */
  trouble?(message: string): void
  /** These entries were settled, and a step that follows their upload has failed. */
  unfinished?(indexes: readonly number[], finalizationId: string, problem: string): void
}

/**
 * Takes entries to a destination. The one for a running server is in send.ts. The command line has another for an uploader of
 * its own process (`src/cli/upload-here.ts`), and passes it in: nothing of the server is needed here.
 */
export interface Sender {
  send(entries: readonly Entry[], signal: AbortSignal, listener: Listener): Promise<void>
  /** Why links that were made lead nowhere, as the end of a sentence; undefined: they work, as far as is known. */
  explainDead(): Promise<string | undefined>
}

/** What became of all entries. */
export interface Sent {
  /** For each entry, in order. */
  readonly results: readonly Result[]
  /** Steps after the upload that have failed. */
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
