import { showSize } from './row.ts'
import { fill, words } from './words.ts'

/** Milliseconds before anything is said, and of which the speed is the mean. */
const FIRST = 1500
const WINDOW = 5000

/** Tells people how fast one upload goes and how long the rest takes; nothing of what is over in a moment. */
export function createMeter(): (sent: number, all: number) => string {
  const start = performance.now()
  const marks = [{ time: start, sent: 0 }]
  return (sent, all) => {
    const time = performance.now()
    marks.push({ time, sent })
    while (marks.length > 2 && time - (marks[1]?.time ?? time) > WINDOW) marks.shift()
    const from = marks[0] ?? { time: start, sent: 0 }
    const speed = ((sent - from.sent) / (time - from.time)) * 1000
    if (time - start < FIRST || !(speed > 0) || sent === all) return ''
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
