import { isFailure, type Result } from '../result.ts'

/** An image before and after a change. */
export interface Pair {
  readonly before: Result
  readonly after: Result
  /** Undefined if only the bytes were compared. */
  readonly difference?: Difference
}

export interface Difference {
  /** Share of the pixels that have changed, 0 to 1. */
  readonly share: number
  /** An image that shows them. */
  readonly image?: Result
}

/** Sorts pairs: the most changed first, before all others those whose pixels could not be compared. */
export const byDifference = (a: Pair, b: Pair) => (b.difference?.share ?? 1) - (a.difference?.share ?? 1)

/** The differences between two sets of images. */
export interface Comparison {
  readonly changed: readonly Pair[]
  /** Number of images that are the same. */
  readonly same: number
  /** Images that are new, and images that failed. */
  readonly added: readonly Result[]
  readonly gone: readonly Result[]
}

/** An image, and the path by which it is paired. */
export interface Located {
  readonly result: Result
  /** Path below the folder of the images. Undefined if that folder is not known: then it ends the name. */
  readonly inside?: string | undefined
}

/** Pairs the images that have the same path below the folders of the two sets. */
export function compare(before: readonly Located[], after: readonly Located[]): Comparison {
  const root = rootOf(before, after)
  const byPath = new Map(before.map(one => [pathBelow(root, one), one.result]))
  const pairs = new Map<Result, Result>()
  const taken = new Set<Result>()
  const failed = new Set<Result>()
  // The longest path first: "a/b/c.png" is rather "b/c.png" than "c.png".
  const paths = after.flatMap(one =>
    pathsOf(one).map(path => ({ result: one.result, path, depth: segmentsOf(path).length })),
  )
  for (const { result, path } of paths.sort((a, b) => b.depth - a.depth)) {
    const found = byPath.get(path)
    if (found === undefined) continue
    if (isFailure(result)) failed.add(found)
    else if (!pairs.has(result) && !taken.has(found)) {
      pairs.set(result, found)
      taken.add(found)
    }
  }
  const changed = [...pairs].flatMap(([after, before]) => (isSame(before, after) ? [] : [{ before, after }]))
  return {
    changed,
    same: pairs.size - changed.length,
    added: after.flatMap(({ result }) => (pairs.has(result) ? [] : [result])),
    gone: before.flatMap(({ result }) => (taken.has(result) || failed.has(result) ? [] : [result])),
  }
}

/** Maximum number of path segments that are compared. */
const MOST_FOLDERS = 20

const segmentsOf = (path: string) => path.split(/[\\/]/)

/** The paths below a folder that an image may have: if the folder is not known, each end of its name. */
function pathsOf({ result, inside }: Located): string[] {
  if (inside !== undefined) return [segmentsOf(inside).join('/')]
  const names = segmentsOf(result.name)
  return names.slice(-MOST_FOLDERS).map((_, index, some) => some.slice(index).join('/'))
}

/** The folder of the earlier images, if they do not tell: the one below which most of them have the path of a present one. */
function rootOf(before: readonly Located[], after: readonly Located[]): string {
  const known = new Set(after.flatMap(pathsOf))
  const votes = new Map<string, number>()
  for (const one of before) {
    const path = pathsOf(one).find(path => known.has(path))
    if (one.inside !== undefined || path === undefined) continue
    const root = segmentsOf(one.result.name).join('/').slice(0, -path.length)
    votes.set(root, (votes.get(root) ?? 0) + 1)
  }
  const [best] = [...votes].sort(([a, x], [b, y]) => y - x || a.length - b.length)
  return best?.[0] ?? ''
}

function pathBelow(root: string, { result, inside }: Located): string {
  const path = segmentsOf(inside ?? result.name).join('/')
  return inside === undefined && path.startsWith(root) ? path.slice(root.length) : path
}

/** Compares hashes, or else the URLs, which depend on the content if the key template does. */
function isSame(before: Result, after: Result): boolean {
  if (before.sha256 !== undefined && after.sha256 !== undefined) return before.sha256 === after.sha256
  return before.url === after.url
}
