import { describeThrown, isStorageFull, systemCode, UploadError } from '../../errors.ts'
import { explainNetwork, isTransient } from '../../http/network.ts'

/** Matches a message that already says what to do. */
export const ADVICE =
  /(?:^|[.:;,(!?] |\bor |\band )(?:add|allow|ask|change|check|copy|correct|create|free|give|increase|install|leave|make|mount|move|name|put|raise|release|remove|run|send|set|sign|take|try|turn|use|wait|write)\b/i

/** The operation that failed. */
export interface Attempted {
  /** `provider/configName`. */
  readonly id: string
  /** Undefined for a check, which concerns no object. */
  readonly what?: { readonly verb: 'store' | 'look for' | 'remove' | 'sign a link to'; readonly key: string }
}

/**
 * Makes an error of a provider into a message for the client: what failed, on what, at which destination, why, and what to do.
 * Adds only the parts that are missing.
 */
export function explainFailure(error: unknown, attempted: Attempted): UploadError {
  const { id } = attempted
  const known = error instanceof UploadError ? error : undefined
  const code = systemCode(error)
  const why = known?.message ?? reasonOf(error, code)
  const sentence = /[.!?…]$/.test(why.trimEnd()) ? why.trimEnd() : `${why.trimEnd()}.`
  const errorCode = known?.code ?? (isStorageFull(error) ? 'insufficient_storage' : 'destination_failed')
  const retryable = known?.retryable ?? isTransient(code)
  const advice = ADVICE.test(sentence) ? '' : ` ${adviceFor(errorCode, retryable, id)}`
  const { retryAfterS } = known ?? {}
  return new UploadError(errorCode, `${beginningFor(sentence, attempted)}${sentence}${advice}`, {
    cause: known ? (known.cause ?? known) : error,
    retryable,
    ...(retryAfterS !== undefined && { retryAfterS }),
  })
}

function reasonOf(error: unknown, code: string | undefined): string {
  if (isStorageFull(error)) return 'no space left'
  return code === undefined ? describeThrown(error) : (explainNetwork(error) ?? code)
}

function beginningFor(sentence: string, { id, what }: Attempted): string {
  const isPlaced = sentence.includes(id)
  if (what === undefined) return ''
  if (sentence.includes(`"${what.key}"`)) return isPlaced ? '' : `${id}: `
  return `Could not ${what.verb} "${what.key}"${isPlaced ? '' : ` at ${id}`}: `
}

function adviceFor(code: string, retryable: boolean, id: string): string {
  if (code === 'insufficient_storage') return 'Free some space there and try again.'
  if (code === 'too_large') return 'Send a smaller file.'
  const where = `"providers.${id.replace('/', '.')}" in the configuration`
  return retryable ? `Try again, or check ${where}.` : `Check ${where}.`
}
