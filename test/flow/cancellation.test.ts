import { getEventListeners } from 'node:events'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createCanceller, orAborted } from '../../src/flow/cancellation.ts'

const reason = new Error('gone')
const never = new Promise<never>(() => {})

it('a request of many files printed a warning for its listeners', async () => {
  const warnings: Error[] = []
  const note = (warning: Error) => void warnings.push(warning)
  process.on('warning', note)
  onTestFinished(() => void process.off('warning', note))
  const { signal } = createCanceller()
  for (let count = 0; count < 50; count++) signal.addEventListener('abort', () => {})
  await new Promise(setImmediate)
  expect(warnings).toEqual([])
})

describe('work that may be given up', () => {
  it('gives what it comes to, and leaves no listener', async () => {
    const { signal } = createCanceller()
    expect(await orAborted(Promise.resolve(1), signal)).toBe(1)
    await expect(orAborted(Promise.reject(reason), signal)).rejects.toBe(reason)
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('is left with the reason of the signal, at once', async () => {
    const canceller = createCanceller()
    const working = orAborted(never, canceller.signal)
    canceller.abort(reason)
    await expect(working).rejects.toBe(reason)
    await expect(orAborted(never, canceller.signal)).rejects.toBe(reason)
    expect(getEventListeners(canceller.signal, 'abort')).toEqual([])
  })
})
