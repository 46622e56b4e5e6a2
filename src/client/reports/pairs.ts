import { isFailure, type Result } from '../result.ts'

/** An image before and after a change. */
export interface Pair {
  readonly before: Result
  readonly after: Result
}

/** The differences between two sets of images. */
export interface Comparison {
  readonly changed: readonly Pair[]
  /** Number of images with the same bytes. */
  readonly same: number
  /** Images that are new, and images that failed. */
  readonly added: readonly Result[]
  readonly gone: readonly Result[]
}

/** Pairs images of the same name. If several match, the pair with the most parent folders in common wins. */
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

/** Maximum number of path segments that are compared. */
const MOST_FOLDERS = 20

const namesOf = ({ name }: Result) => name.split(/[\\/]/)

/** The last segments of the name. Undefined if it has fewer. */
function endOf(result: Result, depth: number): string | undefined {
  const names = namesOf(result)
  return names.length < depth ? undefined : names.slice(-depth).join('/')
}

/** Compares hashes, or else the URLs, which depend on the content if the key template does. */
function isSame(before: Result, after: Result): boolean {
  if (before.sha256 !== undefined && after.sha256 !== undefined) return before.sha256 === after.sha256
  return before.url === after.url
}
