import { UploadError } from '../../errors.ts'
import type { Target } from '../contract.ts'

/** As in S3; leaves room for a folder in the 4096 bytes that Linux takes. */
const MAX_KEY_BYTES = 1024

/** A target that sees only keys as `UploadObject` describes them: `remove('')` would be about a whole bucket or folder. */
export function withCheckedKeys(target: Target): Target {
  const { exists, remove, locate } = target
  return {
    ...target,
    async put(object, signal) {
      checkKey(object.key)
      return target.put(object, signal)
    },
    ...(exists && {
      async exists(key, signal) {
        checkKey(key)
        return exists.call(target, key, signal)
      },
    }),
    ...(remove && {
      async remove(key, signal) {
        checkKey(key)
        return remove.call(target, key, signal)
      },
    }),
    // Nothing lies under a key that no object can have.
    ...(locate && {
      locate: async key => (faultOf(key) === undefined ? locate.call(target, key) : undefined),
    }),
  }
}

function checkKey(key: string): void {
  const fault = faultOf(key)
  if (fault === undefined) return
  throw new UploadError(
    'delivery_failed',
    `${JSON.stringify(key.slice(0, 100))} cannot be stored: ${fault}. Change the key template or the name of the file.`,
  )
}

function faultOf(key: string): string | undefined {
  if (Buffer.byteLength(key) > MAX_KEY_BYTES) return `it is longer than ${MAX_KEY_BYTES} bytes`
  if (/[\u0000-\u001f\u007f]/.test(key)) return 'it holds a control character'
  if (!key.isWellFormed()) return 'it holds half a character (a lone surrogate)'
  for (const name of key.split('/')) {
    if (name === '') return 'it is empty, starts or ends with "/", or has two in a row'
    if (name === '.' || name === '..') return `"${name}" is no name`
  }
  return undefined
}
