import { within } from '../../flow/time-limit.ts'
import type { Mask } from '../../mask.ts'
import { Problem } from '../../problem.ts'
import { checkKey, quoteKey } from './check-key.ts'
import { explain } from './explain.ts'
import type { OpenTarget, Stored } from './target.ts'

/** Time limit for `close`, which may wait for uploads in progress. */
const CLOSE_LIMIT_MS = 30_000
const notClosed = () => new Error(`it did not close within ${CLOSE_LIMIT_MS / 1000} s`)

/**
 * Makes a target that gets only valid object keys, because `remove('')` could delete a whole bucket or folder, and whose
 * failures are explained.
 *
 * @param disconnect closes the connections of the target after it was closed
 * @param mask hides the secrets of the destination
 */
export function toCheckedTarget(
  target: OpenTarget,
  id: string,
  disconnect: () => void,
  mask?: Mask,
): OpenTarget {
  // Plugins may be written in JavaScript.
  if (typeof target?.put !== 'function')
    throw new Error('its "open" must return an object with the function "put"')
  const { location = `${id}/`, traits, exists, remove, sign, check, close } = target

  /** Explains failures, except after an abort: the caller that aborted knows the reason. */
  async function attempt<T>(doing: string | undefined, signal: AbortSignal, work: () => Promise<T>) {
    try {
      return await work()
    } catch (error) {
      signal.throwIfAborted()
      throw explain(error, id, doing, mask)
    }
  }

  const withKey = <T>(verb: string, key: string, signal: AbortSignal, work: () => Promise<T>) =>
    attempt(`${verb} ${quoteKey(key)}`, signal, () => {
      checkKey(key, traits)
      return work()
    })

  return {
    ...target,
    location,
    ...(traits && { traits }), // spreading does not copy what a class has
    put: (object, signal) =>
      withKey('store', object.key, signal, async () => checkStored(await target.put(object, signal))),
    exists:
      exists && ((key, signal) => withKey('look for', key, signal, () => exists.call(target, key, signal))),
    remove:
      remove && ((key, signal) => withKey('remove', key, signal, () => remove.call(target, key, signal))),
    sign:
      sign &&
      ((key, method, mostS, signal) =>
        withKey('sign a link to', key, signal, () => sign.call(target, key, method, mostS, signal))),
    check: check && (signal => attempt(undefined, signal, () => check.call(target, signal))),
    close: async () => within(close?.call(target), CLOSE_LIMIT_MS, notClosed).finally(disconnect),
  }
}

/** Links are used on pages and in editors, so they must be http or https URLs, or files that this server serves. */
function checkStored(stored: Stored): Stored {
  const url: unknown = stored?.url
  if (
    typeof url === 'string' &&
    /^(?:https?:\/\/|files\/)/i.test(url) &&
    URL.canParse(url, 'http://localhost')
  )
    return stored
  const what = url === undefined ? 'no URL' : `${JSON.stringify(url).slice(0, 100)} as the URL`
  throw new Problem(`the provider returned ${what} instead of an http or https URL`)
}
