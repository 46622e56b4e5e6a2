import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

// Without a limit, one request could try thousands of keys and count as one failure.
const MAX_VALUES = 8

/** The first 8 keys in a request in every possible decoding, headers before the query. Empty keys are skipped. */
export function collectKeys(headers: IncomingHttpHeaders, query: URLSearchParams): string[] {
  const inQuery = [...query.getAll('key'), ...query.getAll('secret')]
  const readings = [
    ...keysInHeaders(headers).map(value => [value, readAsUtf8(value)]),
    // A Base64 key pasted into a URL arrives with spaces instead of plus signs.
    ...inQuery.filter(isFilled).map(value => [value, value.replaceAll(' ', '+')]),
  ]
  return [...new Set(readings.slice(0, MAX_VALUES).flat())]
}

/** Whether a value of `collectKeys` is a key, in one of its decodings. */
export function isReadingOf(value: string, key: string): boolean {
  return [value, readAsUtf8(value), value.replaceAll(' ', '+')].includes(key)
}

/** The values of the headers that may have an upload key, as Node reads them. */
export function keysInHeaders(headers: IncomingHttpHeaders): string[] {
  const { authorization } = headers
  const values = [
    authorization?.replace(/^bearer(?:\s+|$)/i, ''),
    headers['x-upload-key'],
    headers['x-picgo-secret'],
  ]
  return values.flat().filter(isFilled)
}

function isFilled(value: string | undefined): value is string {
  return value !== undefined && value !== ''
}

// Node decodes header values as latin1; most clients write UTF-8.
export function readAsUtf8(value: string): string {
  return Buffer.from(value, 'latin1').toString('utf8')
}

/** Returns a function that finds the indexes of those of `keys` that were sent, in constant time. */
export function createKeyFinder(keys: readonly string[]): (sent: readonly string[]) => number[] {
  const known = keys.map(hashKey)
  return sent => {
    const hashes = sent.map(hashKey)
    const matches = known.map(key => hashes.filter(hash => timingSafeEqual(hash, key)).length > 0)
    return matches.flatMap((isSent, index) => (isSent ? [index] : []))
  }
}

function hashKey(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}
