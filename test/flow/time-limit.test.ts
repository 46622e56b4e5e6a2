import { expect, it } from 'vitest'
import { limitTime } from '../../src/flow/time-limit.ts'

/** Watches something; gives when it was late. */
function watch(ms: number) {
  const begun = performance.now()
  let end = () => {}
  const late = new Promise<number>(resolve => {
    end = limitTime(ms, () => resolve(performance.now() - begun))
  })
  return { late, end }
}

const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

it('says when something takes longer, for each of those that share a limit', async () => {
  const first = watch(40)
  const done = watch(40)
  await pause(20)
  const second = watch(40)
  const longer = watch(60)
  done.end()
  for (const { late } of [first, second]) expect(await late).toBeGreaterThanOrEqual(40)
  expect(await longer.late).toBeGreaterThanOrEqual(60)
  expect(await Promise.race([done.late, 'in time'])).toBe('in time')
})

it('holds again when nothing was under way for a while', async () => {
  watch(10).end()
  await pause(30)
  expect(await watch(10).late).toBeGreaterThanOrEqual(10)
})

it('is not touched by what ends twice or too late', async () => {
  const first = watch(10)
  await first.late
  first.end()
  const second = watch(10)
  first.end()
  await second.late
  second.end()
})
