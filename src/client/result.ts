/** What became of one file or address of the command line; what is not known is left out. */
export interface Result {
  /** As it was typed, or found in a folder or by a pattern. */
  readonly name: string
  readonly url?: string
  /** Bytes. */
  readonly size?: number
  /** Of the bytes, hex. */
  readonly sha256?: string
  /** Media type. */
  readonly contentType?: string
  /** Of a picture, pixels. */
  readonly width?: number
  readonly height?: number
  /** When it may go, if it does: a time of RFC 3339. */
  readonly expiresAt?: string
  readonly error?: string
  /** Of a failure: as the API names it, or `unreachable`, `no_answer`, `interrupted`. */
  readonly code?: string
  /** It is stored, but a later step failed: what finishes it without uploading again. */
  readonly finalizationId?: string
}

/** The error of what Ctrl-C cut short. */
export const INTERRUPTION = 'the upload was interrupted'

export const interruption = (name: string): Result => ({ name, error: INTERRUPTION, code: 'interrupted' })

/** Not stored. What only waits to be finished is none. */
export function isFailure({ error, finalizationId }: Result): boolean {
  return error !== undefined && finalizationId === undefined
}
