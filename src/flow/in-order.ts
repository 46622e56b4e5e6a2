/** Maps a list with at most `width` calls at a time and keeps the order. When one throws, those under way end first. */
export function inOrder<T, R>(
  list: readonly T[],
  width: number,
  map: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  return list.length === 1 ? Promise.all(list.map(map)) : sideBySide(list, width, map)
}

async function sideBySide<T, R>(
  list: readonly T[],
  width: number,
  map: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const results: R[] = new Array(list.length)
  const entries = list.entries()
  const work = async () => {
    for (const [index, item] of entries) results[index] = await map(item, index)
  }
  const workers = Array.from({ length: Math.min(width, list.length) }, work)
  await Promise.allSettled(workers)
  await Promise.all(workers)
  return results
}
