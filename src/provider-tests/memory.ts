import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'vitest'
import { MIB } from './objects.ts'

/** Puts of so much are watched. */
const WATCHED_BYTES = 64 * MIB
/** What a put of 64 MiB may hold at once: less than the body, more than the parts an SDK keeps in flight. */
const MEMORY_BOUND_BYTES = 48 * MIB

let collector: (() => void) | undefined

/** At its first use: to import this changes nothing of V8. */
function exposeCollector(): () => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc')
}

/** Expects a put to hold less than its body. A small body would tell nothing: its stream is the proof that it is not held. */
export async function withinMemory<T>(bodyBytes: number, put: () => Promise<T>): Promise<T> {
  if (bodyBytes < WATCHED_BYTES) return put()
  const { result, peakBytes } = await watchMemory(put)
  expect(peakBytes).toBeLessThan(MEMORY_BOUND_BYTES)
  return result
}

/** Counts what is still in use: what waits to be collected says when the collector ran, not what is held. */
async function watchMemory<T>(work: () => Promise<T>): Promise<{ result: T; peakBytes: number }> {
  collector ??= exposeCollector()
  const collectGarbage = collector
  const measure = () => {
    // The memory of buffers is given back by a thread, and counted until then; the second collection waits for that.
    collectGarbage()
    collectGarbage()
    return process.memoryUsage().external
  }
  const before = measure()
  let peak = before
  // Where collecting takes long, as on a busy machine, the work must still get most of the time.
  const look = () => {
    const began = performance.now()
    peak = Math.max(peak, measure())
    timer = setTimeout(look, 20 + 5 * (performance.now() - began))
  }
  let timer = setTimeout(look, 20)
  try {
    const result = await work()
    return { result, peakBytes: Math.max(peak, measure()) - before }
  } finally {
    clearTimeout(timer)
  }
}
