import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'vitest'
import { MIB } from './objects.ts'

/** The memory of puts of at least this size is measured. */
const WATCHED_BYTES = 64 * MIB
/** Memory limit of a put of 64 MiB: less than the body, more than the parts of a multipart upload in flight. */
const MEMORY_BOUND_BYTES = 48 * MIB

let collector: (() => void) | undefined

/** Runs at the first use, so that importing this module does not change V8's flags. */
function exposeCollector(): () => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc')
}

/** Expects a put to hold less memory than its body. A small body is not measured, because its stream already shows that it is not held. */
export async function withinMemory<T>(bodyBytes: number, put: () => Promise<T>): Promise<T> {
  if (bodyBytes < WATCHED_BYTES) return put()
  const { result, peakBytes } = await watchMemory(put)
  expect(peakBytes).toBeLessThan(MEMORY_BOUND_BYTES)
  return result
}

/** Collects garbage before each measurement, so that only memory in use counts. */
async function watchMemory<T>(work: () => Promise<T>): Promise<{ result: T; peakBytes: number }> {
  collector ??= exposeCollector()
  const collectGarbage = collector
  const measure = () => {
    // A background thread frees the memory of buffers, which counts until then. The second collection waits for the thread.
    collectGarbage()
    collectGarbage()
    return process.memoryUsage().external
  }
  const before = measure()
  let peak = before
  // The pause grows with the collection time, so that the work gets most of the time on a busy machine.
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
