const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 60 * 60_000,
  d: 24 * 60 * 60_000,
}

/** Reads `300ms`, `90s`, `90m`, `12h` or `14d`. @returns milliseconds; undefined for anything else */
export function readDuration(text: string): number | undefined {
  const [, digits, unit = ''] = /^(\d{1,10}(?=ms)|\d{1,6}(?!ms))(ms|[smhd])$/.exec(text) ?? []
  return digits === undefined ? undefined : Number(digits) * (UNITS[unit] ?? 1)
}

/** Reads an RFC 3339 timestamp. In a query the plus of an offset often arrives as a space. */
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
  const [unit, size] = Object.entries(UNITS).findLast(([, size]) => ms % size === 0) ?? ['ms', 1]
  return `${ms / size}${unit}`
}
