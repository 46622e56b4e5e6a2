import { isFailure, type Result } from '../result.ts'
import type { Image } from './images.ts'
import type { State } from './review.ts'

/** Two images of the same path, or one of them. */
export interface Paired {
  /** Path below the folder of the images. */
  readonly name: string
  readonly state: State
  readonly before?: Image
  readonly after?: Image
  /** The earlier path, of `renamed`. */
  readonly from?: string
  /** Present images that Playwright wrote: what it expected, and the difference. */
  readonly expected?: Image
  readonly difference?: Image
}

/**
 * Pairs the images that have the same path below the folders of the two sets, and then those of the rest that have the same
 * content: they were renamed.
 *
 * @returns the present images, in order, then those that are gone
 */
export function pair(before: readonly Image[], after: readonly Image[]): Paired[] {
  const root = rootOf(before, after)
  const paths = new Map(before.map(one => [one, pathBelow(root, one)]))
  const byPath = new Map([...paths].map(([one, path]) => [path, one]))
  const left = new Set(before)
  const partners = new Map<Image, Image>()
  // The longest path first: "a/b/c.png" is rather "b/c.png" than "c.png".
  const candidates = after.flatMap(one =>
    pathsOf(one).map(path => ({ one, path, depth: path.split('/').length })),
  )
  for (const { one, path } of candidates.sort((a, b) => b.depth - a.depth)) {
    const found = byPath.get(path)
    if (found && !partners.has(one) && left.delete(found)) partners.set(one, found)
  }
  const triples = findTriples(after)
  const others = new Set([...triples.values()].flatMap(({ expected, difference }) => [expected, difference]))
  const byContent = new Map<string, Image[]>()
  for (const one of left) {
    const { sha256 } = one.result
    if (sha256 !== undefined) byContent.set(sha256, [...(byContent.get(sha256) ?? []), one])
  }
  const present = after.flatMap((one): Paired | Paired[] => {
    if (others.has(one)) return []
    const other = partners.get(one)
    const name = (other && paths.get(other)) ?? pathOf(one)
    const triple = triples.get(one)
    if (triple) return { name: name.replace(ACTUAL, '$1'), state: 'changed', after: one, ...triple }
    if (isFailure(one.result)) return { name, state: 'failed', after: one }
    if (other) {
      const state = isSame(other.result, one.result) ? 'same' : 'changed'
      return { name, state, before: other, after: one }
    }
    const former = byContent.get(one.result.sha256 ?? '')?.shift()
    if (former === undefined) return { name, state: 'new', after: one }
    left.delete(former)
    return { name, state: 'renamed', before: former, after: one, from: paths.get(former) ?? '' }
  })
  const gone = [...left].map((one): Paired => ({ name: paths.get(one) ?? '', state: 'gone', before: one }))
  return [...present, ...gone]
}

/** The end of the name of a screenshot that is not the expected one, as Playwright writes it. */
const ACTUAL = /-actual(\.\w+)$/

/** Whether Playwright wrote one of these files next to the expected one. */
export const hasTriples = (images: readonly Image[]) => findTriples(images).size > 0

/** What Playwright expected, and the difference, by what it got instead. */
function findTriples(images: readonly Image[]): ReadonlyMap<Image, Pick<Paired, 'expected' | 'difference'>> {
  const byName = new Map(images.map(one => [pathOf(one), one]))
  const found = new Map<Image, Pick<Paired, 'expected' | 'difference'>>()
  for (const [name, one] of byName) {
    const expected = ACTUAL.test(name) ? byName.get(name.replace(ACTUAL, '-expected$1')) : undefined
    const difference = byName.get(name.replace(ACTUAL, '-diff$1'))
    if (expected) found.set(one, { expected, ...(difference && { difference }) })
  }
  return found
}

/** Maximum number of path segments that are compared. */
const MOST_FOLDERS = 20

const pathOf = ({ result, inside = result.name }: Image) => inside.replaceAll('\\', '/')

/** The paths below a folder that an image may have: if the folder is not known, each end of its name. */
function pathsOf(image: Image): string[] {
  if (image.inside !== undefined) return [pathOf(image)]
  const names = pathOf(image).split('/')
  return names.slice(-MOST_FOLDERS).map((_, index, some) => some.slice(index).join('/'))
}

/** The folder of the earlier images, if they do not tell: the one below which most of them have the path of a present one. */
function rootOf(before: readonly Image[], after: readonly Image[]): string {
  const known = new Set(after.flatMap(pathsOf))
  const votes = new Map<string, number>()
  for (const one of before) {
    const path = pathsOf(one).find(path => known.has(path))
    if (one.inside !== undefined || path === undefined) continue
    const root = pathOf(one).slice(0, -path.length)
    votes.set(root, (votes.get(root) ?? 0) + 1)
  }
  const [best] = [...votes].sort(([a, x], [b, y]) => y - x || a.length - b.length)
  return best?.[0] ?? ''
}

function pathBelow(root: string, image: Image): string {
  const path = pathOf(image)
  return image.inside === undefined && path.startsWith(root) ? path.slice(root.length) : path
}

/** Compares hashes, or else the URLs, which depend on the content if the key template does. */
function isSame(before: Result, after: Result): boolean {
  if (before.sha256 !== undefined && after.sha256 !== undefined) return before.sha256 === after.sha256
  return before.url !== undefined && before.url === after.url
}
