import { showSize } from './row.ts'
import { fill, words } from './words.ts'

/** Delay before the speed is shown, and the window over which it is averaged, in milliseconds. */
const SHOWN_AFTER = 1500
const WINDOW = 5000

/** Describes the speed and remaining time of one upload. Returns an empty text for short uploads. */
export function createMeter(): (sent: number, all: number) => string {
  const start = performance.now()
  const marks = [{ time: start, sent: 0 }]
  return (sent, all) => {
    const time = performance.now()
    marks.push({ time, sent })
    while (marks.length > 2 && time - (marks[1]?.time ?? time) > WINDOW) marks.shift()
    const from = marks[0] ?? { time: start, sent: 0 }
    const speed = ((sent - from.sent) / (time - from.time)) * 1000
    if (time - start < SHOWN_AFTER || !(speed > 0) || sent === all) return ''
    const left = showTime((all - sent) / speed)
    return fill(words.pace, {
      sent: showSize(sent),
      all: showSize(all),
      speed: showSize(Math.round(speed)),
      left,
    })
  }
}

function showTime(seconds: number): string {
  const [value, unit] =
    seconds < 90 ? [seconds, 'second'] : seconds < 5400 ? [seconds / 60, 'minute'] : [seconds / 3600, 'hour']
  return new Intl.NumberFormat(document.documentElement.lang, {
    style: 'unit',
    unit,
    unitDisplay: 'short',
  }).format(Math.ceil(value))
}
