import { isFailure, type Result } from '../result.ts'
import type { Image } from './images.ts'
import type { State } from './review.ts'

/** Two images of the same path, or one of them, by their positions in the lists. */
export interface Paired {
  /** Path below the folder of the images. */
  readonly name: string
  readonly state: State
  readonly before?: number
  readonly after?: number
  /** The earlier path, of `renamed`. */
  readonly from?: string
  /** Positions of present images that Playwright wrote: what it expected, and the difference. */
  readonly expected?: number
  readonly difference?: number
}

/**
 * Pairs the images that have the same path below the folders of the two sets, and then those of the rest that have the same
 * content: they were renamed.
 *
 * @returns the present images, in order, then those that are gone
 */
export function pair(before: readonly Image[], after: readonly Image[]): Paired[] {
  const root = rootOf(before, after)
  const paths = before.map(one => pathBelow(root, one))
  const byPath = new Map(paths.map((path, index) => [path, index]))
  const taken = new Set<number>()
  const partner = new Map<number, number>()
  // The longest path first: "a/b/c.png" is rather "b/c.png" than "c.png".
  const candidates = after.flatMap((one, index) =>
    pathsOf(one).map(path => ({ index, path, depth: segmentsOf(path).length })),
  )
  for (const { index, path } of candidates.sort((a, b) => b.depth - a.depth)) {
    const found = byPath.get(path)
    if (found === undefined || partner.has(index) || taken.has(found)) continue
    partner.set(index, found)
    taken.add(found)
  }
  const triples = findTriples(after)
  const others = new Set(
    [...triples.values()].flatMap(({ expected, difference = -1 }) => [expected, difference]),
  )
  const byContent = new Map<string, number[]>()
  for (const [index, { result }] of before.entries()) {
    if (result.sha256 === undefined || taken.has(index)) continue
    byContent.set(result.sha256, [...(byContent.get(result.sha256) ?? []), index])
  }
  const present = after.flatMap(({ result, inside }, index): Paired | Paired[] => {
    if (others.has(index)) return []
    const other = partner.get(index)
    const name = other === undefined ? segmentsOf(inside ?? result.name).join('/') : (paths[other] ?? '')
    const triple = triples.get(index)
    if (triple) return { name: name.replace(ACTUAL, '$1'), state: 'changed', after: index, ...triple }
    if (isFailure(result)) return { name, state: 'failed', after: index }
    if (other !== undefined) {
      const isEqual = isSame(before[other]?.result, result)
      return { name, state: isEqual ? 'same' : 'changed', before: other, after: index }
    }
    const former = byContent.get(result.sha256 ?? '')?.shift()
    if (former === undefined) return { name, state: 'new', after: index }
    taken.add(former)
    return { name, state: 'renamed', before: former, after: index, from: paths[former] ?? '' }
  })
  const gone = paths.flatMap((name, index): Paired[] =>
    taken.has(index) ? [] : [{ name, state: 'gone', before: index }],
  )
  return [...present, ...gone]
}

/** The end of the name of a screenshot that is not the expected one, as Playwright writes it. */
const ACTUAL = /-actual(\.\w+)$/

/** Whether Playwright wrote one of these files next to the expected one. */
export const hasTriples = (images: readonly Image[]) => findTriples(images).size > 0

/** What Playwright expected, and the difference, by the position of what it got instead. */
function findTriples(
  images: readonly Image[],
): ReadonlyMap<number, { expected: number; difference?: number }> {
  const byName = new Map(images.map(({ result, inside }, index) => [inside ?? result.name, index]))
  const found = new Map<number, { expected: number; difference?: number }>()
  for (const [name, index] of byName) {
    const expected = ACTUAL.test(name) ? byName.get(name.replace(ACTUAL, '-expected$1')) : undefined
    if (expected === undefined) continue
    const difference = byName.get(name.replace(ACTUAL, '-diff$1'))
    found.set(index, { expected, ...(difference !== undefined && { difference }) })
  }
  return found
}

/** Maximum number of path segments that are compared. */
const MOST_FOLDERS = 20

const segmentsOf = (path: string) => path.split(/[\\/]/)

/** The paths below a folder that an image may have: if the folder is not known, each end of its name. */
function pathsOf({ result, inside }: Image): string[] {
  if (inside !== undefined) return [segmentsOf(inside).join('/')]
  const names = segmentsOf(result.name)
  return names.slice(-MOST_FOLDERS).map((_, index, some) => some.slice(index).join('/'))
}

/** The folder of the earlier images, if they do not tell: the one below which most of them have the path of a present one. */
function rootOf(before: readonly Image[], after: readonly Image[]): string {
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

function pathBelow(root: string, { result, inside }: Image): string {
  const path = segmentsOf(inside ?? result.name).join('/')
  return inside === undefined && path.startsWith(root) ? path.slice(root.length) : path
}

/** Compares hashes, or else the URLs, which depend on the content if the key template does. */
function isSame(before: Result | undefined, after: Result): boolean {
  if (before?.sha256 !== undefined && after.sha256 !== undefined) return before.sha256 === after.sha256
  return before?.url !== undefined && before.url === after.url
}
