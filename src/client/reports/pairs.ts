import { isFailure, type Result } from '../result.ts'

/** A picture as it was and as it is. */
export interface Pair {
  readonly before: Result
  readonly after: Result
}

/** What became of pictures from one time to another. */
export interface Comparison {
  readonly changed: readonly Pair[]
  /** How many have the same bytes. */
  readonly same: number
  /** What is there only now; what failed is here, too. */
  readonly added: readonly Result[]
  readonly gone: readonly Result[]
}

/** Finds what belongs together: of equal names, those that have the most folders in common, from the last on. */
export function compare(before: readonly Result[], after: readonly Result[]): Comparison {
  const pairs = new Map<Result, Result>()
  const taken = new Set<Result>()
  for (let depth = MOST_FOLDERS; depth > 0; depth--) {
    const byEnd = new Map<string | undefined, Result>()
    for (const one of before) if (!taken.has(one)) byEnd.set(endOf(one, depth), one)
    byEnd.delete(undefined)
    for (const one of after) {
      if (pairs.has(one) || isFailure(one)) continue
      const found = byEnd.get(endOf(one, depth))
      if (found === undefined || taken.has(found)) continue
      pairs.set(one, found)
      taken.add(found)
    }
  }
  const changed = [...pairs].flatMap(([after, before]) => (isSame(before, after) ? [] : [{ before, after }]))
  const failed = new Set(after.filter(isFailure).map(one => endOf(one, 1)))
  return {
    changed,
    same: pairs.size - changed.length,
    added: after.filter(one => !pairs.has(one)),
    gone: before.filter(one => !taken.has(one) && !failed.has(endOf(one, 1))),
  }
}

/** Folders that are looked at. */
const MOST_FOLDERS = 20

const namesOf = ({ name }: Result) => name.split(/[\\/]/)

/** The name with the folders before it; undefined when there are not as many. */
function endOf(result: Result, depth: number): string | undefined {
  const names = namesOf(result)
  return names.length < depth ? undefined : names.slice(-depth).join('/')
}

/** Without their hashes by their addresses, which name the content where the key template does. */
function isSame(before: Result, after: Result): boolean {
  if (before.sha256 !== undefined && after.sha256 !== undefined) return before.sha256 === after.sha256
  return before.url === after.url
}
