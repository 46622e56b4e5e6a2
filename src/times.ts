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

/**
 * Reads a time as people write it: `12h` (ago), `today`, `yesterday`, `2026-11-01`, `2026-11-01 18:00` or an RFC 3339 timestamp.
 * Without an offset it is in the local time zone. A day is the midnight at which it begins.
 *
 * @returns milliseconds since the epoch; undefined for anything else
 */
export function readMoment(text: string, now: number): number | undefined {
  const ago = readDuration(text)
  if (ago !== undefined) return now - ago
  if (text === 'today' || text === 'yesterday') {
    const midnight = new Date(now).setHours(0, 0, 0, 0)
    // By the calendar, because a day may have 23 or 25 hours.
    return text === 'today' ? midnight : new Date(midnight).setDate(new Date(midnight).getDate() - 1)
  }
  const [, date, time = '00:00', seconds = ':00'] =
    /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d)?)?$/.exec(text) ?? []
  if (date === undefined) return readTime(text)
  const local = `${date}T${time}${seconds}`
  return readTime(`${local}Z`) === undefined ? undefined : Date.parse(local)
}

/** `2026-11-01 18:00:00`, in the local time zone. */
export function showMoment(time: number): string {
  const at = new Date(time)
  const two = (part: number) => String(part).padStart(2, '0')
  const date = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join('-')
  return `${date} ${[at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(':')}`
}
