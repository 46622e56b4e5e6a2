import { Problem } from '../../problem.ts'
import type { Traits } from './target.ts'

/** The limit of S3. It leaves room for a folder in the 4096 bytes of a path on Linux. */
const MAX_KEY_BYTES = 1024

/**
 * The only check of object keys. A destination with more rules has the trait `keyFault`.
 *
 * @throws Problem if an object key is invalid
 */
export function checkKey(key: string, { keyFault }: Traits = {}): void {
  const fault = faultOf(key) ?? keyFault?.(key)
  if (fault === undefined) return
  throw new Problem(`its object key is invalid: ${fault}`, {
    advice: 'Change the key template or the file name.',
  })
}

/** Quotes an object key for a message. An invalid one is shortened, and its control characters are escaped. */
export function quoteKey(key: string): string {
  return faultOf(key) === undefined ? `"${key}"` : JSON.stringify(key.slice(0, 100))
}

/** Returns what is wrong with an object key. Undefined if it is valid. */
function faultOf(key: string): string | undefined {
  if (Buffer.byteLength(key) > MAX_KEY_BYTES) return `it is longer than ${MAX_KEY_BYTES} bytes`
  if (/[\u0000-\u001f\u007f]/.test(key)) return 'it contains a control character'
  if (!key.isWellFormed()) return 'it contains an invalid character (a lone surrogate)'
  for (const name of key.split('/')) {
    if (name === '') return 'it is empty, starts or ends with "/", or contains "//"'
    if (name === '.' || name === '..') return `"${name}" is not a valid file name`
  }
  return undefined
}

/** The rule of destinations with folders: temporary files have a leading dot, and some servers read backslashes as slashes. */
export function findFileFault(key: string): string | undefined {
  const hidden = key.split('/').find(name => name.startsWith('.'))
  if (hidden !== undefined) return `"${hidden}" starts with a dot`
  return key.includes('\\') ? 'it contains a backslash' : undefined
}
