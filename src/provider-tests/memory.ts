import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

let collector: (() => void) | undefined

/** At its first use: to import this changes nothing of V8. */
function exposeCollector(): () => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc')
}

/** Counts what is still in use: what waits to be collected says when the collector ran, not what is held. */
export async function watchMemory<T>(work: () => Promise<T>): Promise<{ result: T; peakBytes: number }> {
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
