import { getEventListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { beginTimeLimit, within } from '../../src/flow/time-limit.ts'

const gone = new Error('the client has gone')
const late = new Error('late')

it('aborts with the reason given when the time is up, not before', async () => {
  const begun = performance.now()
  const limit = beginTimeLimit(40, new AbortController().signal, () => late)
  expect(limit.signal.aborted).toBe(false)
  expect(limit.leftMs()).toBeLessThanOrEqual(40)
  await new Promise(resolve => limit.signal.addEventListener('abort', resolve))
  // Timers count whole milliseconds.
  expect(performance.now() - begun).toBeGreaterThanOrEqual(39)
  expect(limit.signal.reason).toBe(late)
  limit.end()
})

it('aborts as the signal around it does, also when that was before', () => {
  const outer = new AbortController()
  const limit = beginTimeLimit(60_000, outer.signal, () => late)
  outer.abort(gone)
  expect(limit.signal.reason).toBe(gone)
  const after = beginTimeLimit(60_000, outer.signal, () => late)
  expect(after.signal.reason).toBe(gone)
  for (const one of [limit, after]) one.end()
})

it('that has ended listens to nothing and comes to no end', async () => {
  const outer = new AbortController()
  const limit = beginTimeLimit(10, outer.signal, () => late)
  limit.end()
  limit.end()
  await sleep(40)
  outer.abort(gone)
  expect(limit.signal.aborted).toBe(false)
  expect(getEventListeners(outer.signal, 'abort')).toEqual([])
})

it('work that takes longer is left with the failure given, and work that does not gives what it gives', async () => {
  await expect(within(new Promise(() => {}), 10, () => late)).rejects.toBe(late)
  expect(await within(Promise.resolve('done'), 60_000, () => late)).toBe('done')
  await expect(within(Promise.reject(gone), 60_000, () => late)).rejects.toBe(gone)
})
