import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { poll } from '../../src/flow/poll.ts'

const { signal } = new AbortController()
const reason = new Error('gone')
const never = async () => undefined
/** Before any timer that has not run out. */
const soon = () => new Promise(setImmediate)

describe('who asks again and again', () => {
  it('asks until there is an answer, with growing pauses', async () => {
    const times: number[] = []
    const answer = await poll(async () => (times.push(performance.now()) === 4 ? times : undefined), signal)
    expect(answer).toBe(times)
    const [first = 0, second = 0, third = 0, fourth = 0] = times
    // A timer may come a millisecond early.
    expect(second - first).toBeGreaterThan(23)
    expect(third - second).toBeGreaterThan(48)
    expect(fourth - third).toBeGreaterThan(98)
  })

  it('does not ask when the signal is aborted already', async () => {
    let asked = 0
    const ask = async () => ++asked
    await expect(poll(ask, AbortSignal.abort(reason))).rejects.toBe(reason)
    expect(asked).toBe(0)
  })

  it('leaves a pause with the reason of the signal, at once', async () => {
    const canceller = new AbortController()
    const polling = poll(never, canceller.signal)
    await soon()
    canceller.abort(reason)
    await expect(Promise.race([polling, soon()])).rejects.toBe(reason)
    expect(getEventListeners(canceller.signal, 'abort')).toEqual([])
  })
})
