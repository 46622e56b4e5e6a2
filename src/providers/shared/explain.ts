import { describeThrown, isStorageFull, UploadError } from '../../errors.ts'
import { explainNetwork, isTransient } from '../../http/network.ts'
import type { Mask } from '../../mask.ts'
import { Problem, toSentence } from '../../problem.ts'

/**
 * Makes the error of a failed operation for the client: what failed, at which destination, why, and what to do. Only this
 * function writes such sentences. An error that is not a problem but is meant for a client already stays as it is.
 *
 * @param thrown a Problem, or whatever a library, a plugin or the system throws
 * @param id `provider/configName`
 * @param doing such as `store "a.png"`. Undefined for a check, which concerns no object
 * @param mask hides the secrets of the destination, which hosts repeat
 */
export function explain(thrown: unknown, id: string, doing?: string, mask: Mask = text => text): UploadError {
  if (thrown instanceof UploadError && !(thrown instanceof Problem)) return thrown
  const problem = thrown instanceof Problem ? thrown : problemOf(thrown)
  const { code, retryable, retryAfterS } = problem
  const why = mask(problem.why)
  const advice = problem.advice ?? adviceFor(problem, id)
  const beginning = doing === undefined ? '' : `Could not ${doing} at ${id}: `
  return new UploadError(code, `${beginning}${toSentence(why)} ${advice}`, {
    cause: problem.cause ?? (why === problem.why ? problem : undefined),
    retryable,
    ...(retryAfterS !== undefined && { retryAfterS }),
  })
}

function problemOf(thrown: unknown): Problem {
  if (isStorageFull(thrown))
    return new Problem('no space left', { code: 'insufficient_storage', cause: thrown })
  const why = explainNetwork(thrown) ?? describeThrown(thrown)
  return new Problem(why.trimEnd(), { retryable: isTransient(thrown), cause: thrown })
}

function adviceFor({ code, retryable }: Problem, id: string): string {
  if (code === 'insufficient_storage') return 'Free some space there and try again.'
  if (code === 'too_large') return 'Send a smaller file.'
  const where = `"providers.${id.replace('/', '.')}" in the configuration`
  return retryable ? `Try again, or check ${where}.` : `Check ${where}.`
}
