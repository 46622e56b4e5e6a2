import { setImmediate as nextTurn } from 'node:timers/promises'

/** After this time, other requests get a turn of the event loop, even if no call waits for anything. */
const LONGEST_TURN_MS = 1

type MapOne<T, R> = (item: T, index: number) => Promise<R>

/** Maps a list with at most `width` calls at a time, and keeps the order. If one throws, running calls finish, and no other begins. */
export function mapConcurrently<T, R>(list: readonly T[], width: number, map: MapOne<T, R>): Promise<R[]> {
  return list.length === 1 ? Promise.all(list.map(map)) : mapMany(list, width, map)
}

async function mapMany<T, R>(list: readonly T[], width: number, map: MapOne<T, R>): Promise<R[]> {
  const results: R[] = new Array(list.length)
  const entries = list.entries()
  let turn = performance.now()
  let hasFailed = false
  const work = async () => {
    for (const [index, item] of entries) {
      if (hasFailed) return
      try {
        results[index] = await map(item, index)
      } catch (error) {
        hasFailed = true
        throw error
      }
      if (performance.now() - turn < LONGEST_TURN_MS) continue
      await nextTurn()
      turn = performance.now()
    }
  }
  const workers = Array.from({ length: Math.min(width, list.length) }, work)
  await Promise.allSettled(workers)
  await Promise.all(workers)
  return results
}
