import type { Entry } from './entries.ts'
import { interruption, type Result } from './result.ts'

/** The defaults of `createClient`: number of parallel requests, and milliseconds. */
export const CLIENT_DEFAULTS = { concurrency: 4, retryFor: 5 * 60_000 }

/** The result of one entry. */
export interface Uploaded extends Result {
  /** Position of the entry, from 0. */
  readonly index: number
}

/** A file to find: one with this hash, or without it the latest list of images with this name, which ends with `REVIEW_SUFFIX`. */
export interface SoughtFile {
  readonly name: string
  readonly sha256?: string
  /** Bytes. */
  readonly size?: number
}

/** What is told while entries are uploaded. */
export interface UploadEvents {
  /** Called with a sentence when requests are retried, or when the server takes long to respond. */
  onNotice?(message: string): void
}

/**
 * Uploads entries: a client of a running server (`create-client.ts`), or the uploader of this process (`src/cli/upload-here.ts`),
 * which is passed in, so that the client does not load the server's modules.
 */
export interface Uploads {
  /** Yields each result when it is known, in any order. Entries without a result were interrupted. */
  upload(entries: readonly Entry[], signal: AbortSignal, events?: UploadEvents): AsyncIterable<Uploaded>
  /**
   * Finds what was stored at the same destination before.
   *
   * @param files up to 1,000
   * @returns a link for each, in order; undefined if there is none
   * @throws Error if that can't be asked
   */
  find(files: readonly SoughtFile[], signal: AbortSignal): Promise<readonly (string | undefined)[]>
  /** Why the links don't work now, as the end of a sentence. Undefined if no such reason is known. */
  explainUnreachable(): Promise<string | undefined>
}

/** Uploads entries and waits for all of them. @returns the result of each entry, in order */
export async function uploadAll(
  uploads: Uploads,
  entries: readonly Entry[],
  signal: AbortSignal,
): Promise<Result[]> {
  const results = entries.map(({ name }) => interruption(name))
  if (entries.length === 0 || signal.aborted) return results
  for await (const { index, ...result } of uploads.upload(entries, signal)) results[index] = result
  return results
}
