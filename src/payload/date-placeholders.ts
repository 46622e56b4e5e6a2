const two = (value: number): string => String(value).padStart(2, '0')

/** Placeholders for dates and times, with PicList's names, in local time. For key templates and for requests to image hosts. */
export const DATE_PLACEHOLDERS: Readonly<Record<string, (now: Date) => string>> = {
  Y: now => String(now.getFullYear()),
  y: now => two(now.getFullYear() % 100),
  m: now => two(now.getMonth() + 1),
  d: now => two(now.getDate()),
  h: now => two(now.getHours()),
  i: now => two(now.getMinutes()),
  s: now => two(now.getSeconds()),
  ms: now => String(now.getMilliseconds()).padStart(3, '0'),
  timestamp: now => String(now.getTime()),
  timestampS: now => String(Math.floor(now.getTime() / 1000)),
}
