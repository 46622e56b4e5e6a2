import type { Destination } from './destinations.ts'

/**
 * Removes objects: with one request if the destination can, otherwise one after the other.
 *
 * @returns the reason for each object that could not be removed, by key
 */
export async function removeKeys(
  { target, queue }: Destination,
  keys: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, unknown>> {
  const inTurn = async <T>(work: () => Promise<T>) => (queue ? queue.run(work, signal) : work())
  if (target.removeMany && keys.length > 1) {
    try {
      return await inTurn(async () => (await target.removeMany?.(keys, signal)) ?? new Map())
    } catch (error) {
      return new Map(keys.map(key => [key, error]))
    }
  }
  const problems = new Map<string, unknown>()
  for (const key of keys)
    await inTurn(async () => target.remove?.(key, signal)).catch(error => problems.set(key, error))
  return problems
}
