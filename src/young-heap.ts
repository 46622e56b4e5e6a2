import { setFlagsFromString } from 'node:v8'

// When little happens V8 collects what it can, and with objects that are gone it throws away the machine code that was
// compiled for their kind, that of nearly every request: the next ones take up to twice as long. So it does not collect
// for being idle, and remembers kinds of objects for longer than the two collections that are its default.
setFlagsFromString('--no-memory-reducer')
setFlagsFromString('--retain-maps-for-n-gc=1000')

let holders = 0

/**
 * Keeps V8's space for new objects from growing. It grows with the traffic, which makes many small uploads twice as
 * fast; but while a large file passes its chunks would wait there to be collected, 30 MB of them.
 *
 * @returns ends it; safe to call twice
 */
export function holdYoungHeap(): () => void {
  if (holders++ === 0) setFlagsFromString('--semi-space-growth-factor=1')
  let isHeld = true
  return () => {
    if (isHeld && --holders === 0) setFlagsFromString('--semi-space-growth-factor=2') // V8's default
    isHeld = false
  }
}

/** Held from the first import on, since loading needs no more; the first small upload lets go. */
export const endStart = holdYoungHeap()
