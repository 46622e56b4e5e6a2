/** Maps a list with at most `width` calls at a time, and keeps the order. If one throws, running calls finish first. */
export async function mapConcurrently<T, R>(
  list: readonly T[],
  width: number,
  map: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  if (list.length === 1) return Promise.all(list.map(map))
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
