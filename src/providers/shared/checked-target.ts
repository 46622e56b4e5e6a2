import { UploadError } from '../../errors.ts'
import { within } from '../../flow/time-limit.ts'
import { checkKey, faultOf } from './check-key.ts'
import { type Attempted, explainFailure } from './explain-failure.ts'
import type { Stored, Target } from './target.ts'

/** Time limit for `close`, which may wait for uploads in progress. */
const CLOSE_LIMIT_MS = 30_000
const notClosed = () => new Error(`it did not close within ${CLOSE_LIMIT_MS / 1000} s`)

const OPTIONAL_METHODS = [
  'findUnknownHost',
  'check',
  'remove',
  'removeMany',
  'exists',
  'sign',
  'locate',
  'close',
] as const

/** Plugins may be written in JavaScript, so their types are checked at run time. */
function checkTarget(target: Target): void {
  if (typeof target?.put !== 'function')
    throw new Error('its "open" must return an object with the function "put"')
  const wrong = OPTIONAL_METHODS.find(name => !['function', 'undefined'].includes(typeof target[name]))
  if (wrong !== undefined)
    throw new Error(`"${wrong}" of the object that its "open" returned is not a function`)
  if (target.location !== undefined && (typeof target.location !== 'string' || target.location === ''))
    throw new Error('"location" of the object that its "open" returned must be a non-empty string')
}

/** Makes a target that gets only valid object keys: `remove('')` could delete a whole bucket or folder. */
export function toCheckedTarget(target: Target, id: string): Target {
  checkTarget(target)
  const {
    exists,
    remove,
    removeMany,
    sign,
    locate,
    findUnknownHost,
    check,
    close,
    location = `${id}/`,
  } = target
  return {
    ...target,
    location,
    // Spreading does not copy the methods of a class.
    ...(findUnknownHost && { findUnknownHost: async signal => findUnknownHost.call(target, signal) }),
    ...(check && { check: signal => attempt({ id }, signal, async () => check.call(target, signal)) }),
    ...(close && { close: async () => within(close.call(target), CLOSE_LIMIT_MS, notClosed) }),
    async put(object, signal) {
      checkKey(object.key)
      const work = async () => checkStored(await target.put(object, signal), object.key)
      return attempt({ id, what: { verb: 'store', key: object.key } }, signal, work)
    },
    ...(exists && {
      async exists(key, signal) {
        checkKey(key)
        const work = async () => exists.call(target, key, signal)
        return attempt({ id, what: { verb: 'look for', key } }, signal, work)
      },
    }),
    ...(remove && {
      async remove(key, signal) {
        checkKey(key)
        const work = async () => remove.call(target, key, signal)
        return attempt({ id, what: { verb: 'remove', key } }, signal, work)
      },
    }),
    ...(removeMany && {
      async removeMany(keys, signal) {
        for (const key of keys) checkKey(key)
        const work = async () => removeMany.call(target, keys, signal)
        const problems = await attempt({ id }, signal, work)
        const explain = (error: unknown, key: string) =>
          explainFailure(error, { id, what: { verb: 'remove', key } })
        return new Map([...problems].map(([key, error]) => [key, explain(error, key)]))
      },
    }),
    ...(sign && {
      async sign(key, method, mostS, signal) {
        checkKey(key)
        const work = async () => sign.call(target, key, method, mostS, signal)
        return attempt({ id, what: { verb: 'sign a link to', key } }, signal, work)
      },
    }),
    // No object can have an invalid key.
    ...(locate && {
      locate: async key => (faultOf(key) === undefined ? locate.call(target, key) : undefined),
    }),
  }
}

/** Explains failures, except after an abort: the caller that aborted knows the reason. */
async function attempt<T>(attempted: Attempted, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw signal.aborted ? error : explainFailure(error, attempted)
  }
}

/** Links are used on pages and in editors, so they must be http or https URLs, or files that this server serves. */
function checkStored(stored: Stored, key: string): Stored {
  const url: unknown = stored?.url
  if (
    typeof url === 'string' &&
    /^(?:https?:\/\/|files\/)/i.test(url) &&
    URL.canParse(url, 'http://localhost')
  )
    return stored
  const what = url === undefined ? 'no URL' : `${JSON.stringify(url).slice(0, 100)} as the URL`
  throw new UploadError(
    'delivery_failed',
    `The provider returned ${what} of "${key}" instead of an http or https URL.`,
  )
}
