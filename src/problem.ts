import { type ErrorCode, UploadError, type UploadErrorOptions } from './errors.ts'

export interface ProblemOptions extends UploadErrorOptions {
  /** What to do, as a sentence. Default: depends on the code. */
  advice?: string | undefined
  /** Default: `destination_failed`. */
  code?: ErrorCode
}

/**
 * Why an operation failed, without what failed and where. A destination throws it, and `explain` (providers/shared) makes the
 * whole sentence from it, because only the caller knows the file and the destination. `message` is the reason and the advice.
 */
export class Problem extends UploadError {
  /** End of a sentence without the point, such as "the bucket does not exist". */
  readonly why: string
  readonly advice: string | undefined

  constructor(why: string, { advice, code = 'destination_failed', ...options }: ProblemOptions = {}) {
    super(code, advice === undefined ? toSentence(why) : `${toSentence(why)} ${advice}`, options)
    this.why = why
    this.advice = advice
  }
}

/** Adds a point, unless the text, which may be of a server, ends with a mark already. */
export function toSentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`
}
