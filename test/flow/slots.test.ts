import { describe, expect, it } from 'vitest'
import { createSlots } from '../../src/flow/slots.ts'

const signal = new AbortController().signal

/** Work that is done when it is told to be. */
function makeWork() {
  let finish: (value: string) => void = () => {}
  let fail: (error: Error) => void = () => {}
  const result = new Promise<string>((resolve, reject) => {
    finish = resolve
    fail = reject
  })
  let begun = false
  return {
    run: () => {
      begun = true
      return result
    },
    finish,
    fail,
    hasBegun: () => begun,
  }
}

const settle = () => new Promise(resolve => setImmediate(resolve))

describe('slots', () => {
  it('run as many at once as there are places, the others in the order they came', async () => {
    const slots = createSlots(2, 10)
    const works = Array.from({ length: 5 }, makeWork)
    const results = works.map(work => slots.run(work.run, signal))
    await settle()
    const begun = () => works.map(work => work.hasBegun())
    expect(begun()).toEqual([true, true, false, false, false])
    works[1]?.finish('b')
    expect(await results[1]).toBe('b')
    await settle()
    expect(begun()).toEqual([true, true, true, false, false])
    works[0]?.fail(new Error('broken'))
    await expect(results[0]).rejects.toThrow('broken')
    await settle()
    expect(begun()).toEqual([true, true, true, true, false])
    for (const work of works) work.finish('x')
    expect(await Promise.all(results.slice(2))).toEqual(['x', 'x', 'x'])
  })

  it('turn newcomers away when the queue is full, and say when to come back', async () => {
    const slots = createSlots(1, 1)
    const [running, waiting] = [makeWork(), makeWork()]
    const results = [slots.run(running.run, signal), slots.run(waiting.run, signal)]
    expect(() => slots.assertRoom()).toThrow(
      expect.objectContaining({ code: 'overloaded', retryAfterS: 5, name: 'UploadError' }),
    )
    const third = makeWork()
    await expect(slots.run(third.run, signal)).rejects.toMatchObject({ code: 'overloaded' })
    expect(third.hasBegun()).toBe(false)
    running.finish('')
    await results[0]
    expect(() => slots.assertRoom()).not.toThrow()
    waiting.finish('')
    await results[1]
    expect(await slots.run(async () => 'later', signal)).toBe('later')
  })

  it('take more, or less, from then on that they are resized', async () => {
    const slots = createSlots(1, 1)
    const [one, two, three] = [makeWork(), makeWork(), makeWork()]
    const results = [slots.run(one.run, signal), slots.run(two.run, signal)]
    expect(() => slots.assertRoom()).toThrow()
    slots.resize(2, 0)
    await settle()
    expect(two.hasBegun()).toBe(true)
    slots.resize(1, 1)
    results.push(slots.run(three.run, signal))
    one.finish('one')
    await results[0]
    await settle()
    expect(three.hasBegun()).toBe(false)
    two.finish('two')
    await results[1]
    await settle()
    expect(three.hasBegun()).toBe(true)
    three.finish('three')
    expect(await Promise.all(results)).toEqual(['one', 'two', 'three'])
  })
})
