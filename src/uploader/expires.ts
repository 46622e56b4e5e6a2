import { UploadError } from '../errors.ts'

const UNITS = { m: 60_000, h: 60 * 60_000, d: 24 * 60 * 60_000 }

/** When a file is to go: never, so many milliseconds after it came, or at a time in milliseconds since the epoch. */
export type Expires = 'never' | { readonly afterMs: number } | { readonly at: number }

/** The expiry of a destination, in milliseconds. */
export interface ExpiryRule {
  /** What holds when a request says nothing. Default: `most`. */
  readonly default?: number | 'never' | undefined
  /** What a request may ask for at most. */
  readonly most?: number | undefined
}

/** Reads `90m`, `12h` or `14d`. @returns milliseconds; undefined for anything else, and for nought */
export function readDuration(text: string): number | undefined {
  const [, digits, unit] = /^(\d{1,6})([mhd])$/.exec(text) ?? []
  return Number(digits ?? 0) * UNITS[(unit ?? 'm') as keyof typeof UNITS] || undefined
}

/**
 * Reads what a request asks for.
 *
 * @param name what the option is called, for messages
 * @throws UploadError `invalid_request`
 */
export function readExpires(text: string, name: string): Expires {
  if (text.toLowerCase() === 'never') return 'never'
  const afterMs = readDuration(text)
  if (afterMs !== undefined) return { afterMs }
  const at = readTime(text)
  if (at !== undefined) return { at }
  throw new UploadError(
    'invalid_request',
    `"${name}" must be "never", a time from now such as 90m, 12h or 14d, or a moment such as 2027-01-31T18:00:00Z.`,
  )
}

/** Reads a time of RFC 3339. In a query the plus of an offset often arrives as a space. */
export function readTime(text: string): number | undefined {
  const [, date, time, offset] =
    /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d(?:\.\d{1,9})?)([Zz]|[-+ ]\d\d:\d\d)$/.exec(text) ?? []
  if (date === undefined || offset === undefined) return undefined
  const isDate = new Date(`${date}T00:00:00Z`)
  if (Number.isNaN(isDate.getTime()) || !isDate.toISOString().startsWith(date)) return undefined
  const at = Date.parse(`${date}T${time}${offset.replace(' ', '+').toUpperCase()}`)
  return Number.isNaN(at) ? undefined : at
}

/** Milliseconds in the largest unit that fits: `90d`. */
export function showDuration(ms: number): string {
  const [unit, size] = (Object.entries(UNITS).reverse() as [string, number][]).find(
    ([, size]) => ms % size === 0,
  ) ?? ['m', UNITS.m]
  return `${ms / size}${unit}`
}

/** Milliseconds since the epoch; undefined: never. */
export function endOf(expires: Expires, now: number): number | undefined {
  if (expires === 'never') return undefined
  return 'at' in expires ? expires.at : now + expires.afterMs
}
