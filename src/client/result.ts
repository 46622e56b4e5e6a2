/** The outcome of one file or URL. Unknown members are missing. */
export interface Result {
  /** Name as typed, or as found in a folder or by a pattern. */
  readonly name: string
  readonly url?: string
  /** URL of a smaller copy of an image, for a comment. */
  readonly small?: string
  /** Bytes. */
  readonly size?: number
  /** Hash of the bytes, hexadecimal. */
  readonly sha256?: string
  /** Media type. */
  readonly contentType?: string
  /** Width and height of an image, pixels. */
  readonly width?: number
  readonly height?: number
  /** When the file expires, RFC 3339. Missing if it never expires. */
  readonly expiresAt?: string
  /** What is wrong with a stored file, such as an image without bytes. */
  readonly warning?: string
  readonly error?: string
  /** Code of a failure: an error code of the API, or `unreachable`, `no_token`, `no_answer`, `interrupted`. */
  readonly code?: string
  /** Set if the file is stored but a post-upload step failed. `finalize` completes the upload with it. */
  readonly finalizationId?: string
}

/** The error of files that were not stored because of Ctrl-C. */
export const INTERRUPTION = 'the upload was interrupted'

export const interruption = (name: string): Result => ({ name, error: INTERRUPTION, code: 'interrupted' })

/** Whether the file was not stored. Pending post-upload steps are not a failure. */
export function isFailure({ error, finalizationId }: Result): boolean {
  return error !== undefined && finalizationId === undefined
}
