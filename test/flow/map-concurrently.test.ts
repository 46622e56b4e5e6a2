import { expect, it } from 'vitest'
import { mapConcurrently } from '../../src/flow/map-concurrently.ts'

const later = () => new Promise<void>(resolve => setImmediate(resolve))

it('lets those under way end before it fails', async () => {
  const ended: number[] = []
  const work = mapConcurrently([1, 2], 2, async number => {
    if (number === 1) throw new Error('one fails')
    await later()
    ended.push(number)
  })
  await expect(work).rejects.toThrow('one fails')
  expect(ended).toEqual([2])
})

it('lets other work run now and then, even if no call waits', async () => {
  let turns = 0
  const counting = setInterval(() => turns++, 0)
  await mapConcurrently(Array.from({ length: 50 }, Number), 4, async () => {
    for (const start = performance.now(); performance.now() - start < 1; );
  })
  clearInterval(counting)
  expect(turns).toBeGreaterThan(2)
})
