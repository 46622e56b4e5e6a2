import { expect, it } from 'vitest'
import { mapConcurrently } from '../../src/flow/map-concurrently.ts'

const later = () => new Promise<void>(resolve => setImmediate(resolve))

it('keeps the order and works on no more than are allowed at a time', async () => {
  let underWay = 0
  let most = 0
  const doubled = await mapConcurrently([1, 2, 3, 4, 5], 2, async number => {
    most = Math.max(most, ++underWay)
    for (let turns = 6 - number; turns > 0; turns--) await later()
    underWay--
    return number * 2
  })
  expect({ doubled, most }).toEqual({ doubled: [2, 4, 6, 8, 10], most: 2 })
})

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

it('begins no other call after one has failed', async () => {
  const begun: number[] = []
  const work = mapConcurrently([1, 2, 3, 4, 5], 2, async number => {
    begun.push(number)
    await later()
    if (number === 1) throw new Error('one fails')
  })
  await expect(work).rejects.toThrow('one fails')
  expect(begun).not.toContain(5)
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
