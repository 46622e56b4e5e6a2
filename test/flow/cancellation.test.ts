import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { type Cancellation, Canceller, toAbortSignal } from '../../src/flow/cancellation.ts'

const reason = new Error('gone')

describe.each<[string, () => { cancellation: Cancellation; abort: (reason: unknown) => void }]>([
  [
    'ours',
    () => {
      const canceller = new Canceller()
      return { cancellation: canceller, abort: reason => canceller.abort(reason) }
    },
  ],
  [
    "Node's",
    () => {
      const controller = new AbortController()
      return { cancellation: controller.signal, abort: reason => controller.abort(reason) }
    },
  ],
])('a cancellation, %s', (_, open) => {
  it('says nothing before', () => {
    const { cancellation } = open()
    expect(cancellation).toMatchObject({ aborted: false, reason: undefined })
    cancellation.throwIfAborted()
  })

  it('tells who listens, once, with the first reason', () => {
    const { cancellation, abort } = open()
    const told: unknown[] = []
    const gone = () => told.push('who has gone')
    cancellation.addEventListener('abort', gone)
    cancellation.addEventListener('abort', () => told.push(cancellation.reason))
    cancellation.removeEventListener('abort', gone)
    abort(reason)
    abort(new Error('again'))
    expect(told).toEqual([reason])
    expect(cancellation).toMatchObject({ aborted: true, reason })
    expect(() => cancellation.throwIfAborted()).toThrow(reason)
  })

  it.each(['before', 'after'])('is a real signal for who asks for it %s', when => {
    const { cancellation, abort } = open()
    if (when === 'after') abort(reason)
    const signal = toAbortSignal(cancellation)
    expect(signal).toBeInstanceOf(AbortSignal)
    if (when === 'before') abort(reason)
    expect(signal.reason).toBe(reason)
    expect(getEventListeners(signal, 'abort')).toHaveLength(0)
  })
})
