import { setFlagsFromString } from 'node:v8'

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
