import { createHash } from 'node:crypto'
import { basename, parse } from 'node:path'
import { UploadError } from '../../errors.ts'
import type { HeldFile } from '../../files/held.ts'
import { mapConcurrently } from '../../flow/map-concurrently.ts'
import { oneLine } from '../../safe-text.ts'
import type { Context } from '../context.ts'
import { type Entry, findEntries, isMissing, NO_FILES } from '../entries.ts'
import { readAtMost } from '../read-at-most.ts'
import { byDifference, type Comparison, compare, type Pair } from '../reports/pairs.ts'
import type { Result } from '../result.ts'

interface Size {
  readonly width: number
  readonly height: number
}

export interface FoundDifference {
  /** Share of the pixels that have changed, 0 to 1. */
  readonly share: number
  readonly before: Size
  readonly after: Size
  /** A PNG that shows them. */
  readonly image?: Uint8Array
}

/**
 * Compares the pixels of two images. It is passed in, because the client does not load what decodes images.
 *
 * @returns undefined if they can't be compared
 * @throws UploadError `destination_failed` if no images can be compared
 */
export type FindDifference = (
  before: Uint8Array,
  after: Uint8Array,
  signal: AbortSignal,
) => Promise<FoundDifference | undefined>

export interface CompareOptions {
  readonly findDifference: FindDifference
  /** Percentage of changed pixels up to which an image counts as the same. */
  readonly threshold: number
}

/** Pairs that are compared at the same time. */
const AT_ONCE = 2

/** Larger files are compared by their bytes. Bytes. */
const MOST_BYTES = 64 * 1024 * 1024

/** Number of images of differences that are kept and uploaded. A comment has no room for more. */
const MOST_SHOWN = 60

/** Earlier images. Only those that have changed are uploaded. */
export interface Earlier {
  /** The earlier images, then the images of the differences. */
  readonly entries: readonly Entry[]
  /** The comparison, after all of them and the present images have been uploaded. */
  conclude(earlier: readonly Result[], now: readonly Result[]): Comparison
}

/** Compares a folder with the files to upload. It compares the local files, because a server may change images. */
export async function findEarlier(
  folder: string,
  now: readonly Entry[],
  options: CompareOptions,
  context: Pick<Context, 'cwd' | 'platform' | 'note'>,
  signal: AbortSignal,
): Promise<Earlier> {
  const all = await findEntries([folder], {}, context)
  const [fault] = all.flatMap(one => one.fault ?? [])
  // The first run of a job has no earlier images.
  const isEmpty = all.length === 1 && (isMissing(fault) || Object.values(NO_FILES).includes(fault ?? ''))
  if (fault !== undefined && !isEmpty) throw new Error(`--compare ${folder}: ${fault}.`)
  if (isEmpty) context.note(oneLine(`--compare ${folder}: ${fault}. All images count as new.`))
  const found = isEmpty ? [] : all
  const [hashed, after] = await Promise.all([hashAll(found, signal), hashAll(now, signal)])
  const locate = (entries: readonly Entry[], results: readonly Result[]) =>
    results.map((result, index) => ({ result, inside: entries[index]?.inside }))
  const { changed } = compare(locate(found, hashed), locate(now, after))
  const entryOf = new Map([...hashed.entries()].map(([index, one]) => [one, found[index]] as const))
  for (const [index, one] of after.entries()) entryOf.set(one, now[index])
  const differences = await findDifferences(changed, entryOf, options, context, signal)
  const isSame = (one: Result) => {
    const difference = differences.get(one)
    return difference !== undefined && difference.share * 100 <= options.threshold
  }
  // What looks the same counts as the same bytes.
  const twins = new Map(changed.filter(pair => isSame(pair.before)).map(pair => [pair.before, pair.after]))
  const before = hashed.map(one => ({ ...one, ...hashOf(twins.get(one)) }))
  const isChanged = new Set(changed.map(pair => pair.before).filter(one => !twins.has(one)))
  const places = hashed.flatMap((one, index) => (isChanged.has(one) ? [index] : []))
  const differenceAt = (index: number) => differences.get(hashed[index] as Result)
  const shown = places.filter(index => differenceAt(index)?.image !== undefined)
  return {
    // If object keys don't depend on the content, the earlier image would otherwise replace the new one of the same name.
    entries: [
      ...places.flatMap(index => {
        const entry = found[index]
        return entry ? [{ ...entry, fileName: `before-${basename(entry.path)}` }] : []
      }),
      ...shown.flatMap(index => toEntry(found[index], differenceAt(index)?.image)),
    ],
    conclude(earlier, present) {
      const uploaded = before.map((one, index) => ({
        ...one,
        ...earlier[places.indexOf(index)],
        ...hashOf(one),
      }))
      const results = present.map((one, index) => ({ ...one, ...hashOf(after[index]) }))
      const comparison = compare(locate(found, uploaded), locate(now, results))
      const images = new Map(shown.map((index, place) => [index, earlier[places.length + place]]))
      const changed = comparison.changed.map((pair): Pair => {
        const index = uploaded.indexOf(pair.before)
        const difference = differenceAt(index)
        if (difference === undefined) return pair
        const image = images.get(index)
        return {
          before: { ...pair.before, ...difference.before },
          after: { ...pair.after, ...difference.after },
          difference: { share: difference.share, ...(image && { image }) },
        }
      })
      return { ...comparison, changed: changed.sort(byDifference) }
    },
  }
}

/** The differences of pairs of images, by the earlier image. Pairs without one are compared by their bytes. */
async function findDifferences(
  pairs: readonly Pair[],
  entryOf: ReadonlyMap<Result, Entry | undefined>,
  { findDifference }: CompareOptions,
  { note }: Pick<Context, 'note'>,
  signal: AbortSignal,
): Promise<ReadonlyMap<Result, FoundDifference>> {
  const differences = new Map<Result, FoundDifference>()
  let isOff = false
  await mapConcurrently(pairs, AT_ONCE, async ({ before, after }) => {
    if (isOff || signal.aborted) return
    const [old, present] = [await readImage(entryOf.get(before)), await readImage(entryOf.get(after))]
    if (old === undefined || present === undefined) return
    try {
      const difference = await findDifference(old, present, signal)
      if (difference === undefined) return
      differences.set(before, difference)
      dropImage(differences)
    } catch (error) {
      if (signal.aborted || isOff) return
      if (!(error instanceof UploadError)) throw error
      isOff = true
      note(oneLine(`${error.message} --compare compares the bytes of images, not their pixels.`))
    }
  })
  return differences
}

/** Drops the image of the smallest difference if there are too many, because all of them are in memory. */
function dropImage(differences: Map<Result, FoundDifference>): void {
  const shown = [...differences].filter(([, { image }]) => image !== undefined)
  if (shown.length <= MOST_SHOWN) return
  const [least] = shown.sort(([, a], [, b]) => a.share - b.share)
  if (least === undefined) return
  const [result, { image: _, ...difference }] = least
  differences.set(result, difference)
}

async function readImage(entry: Entry | undefined): Promise<Uint8Array | undefined> {
  const file = await entry?.open?.().catch(() => undefined)
  if (file === undefined) return undefined
  try {
    return await readAtMost(file.handle.createReadStream({ autoClose: false }), MOST_BYTES)
  } finally {
    await file.close()
  }
}

function toEntry(entry: Entry | undefined, bytes: Uint8Array | undefined): Entry[] {
  if (entry === undefined || bytes === undefined) return []
  const { name } = parse(entry.path)
  const fileName = `difference-${name}.png`
  return [{ kind: 'bytes', name: fileName, path: '', fileName, bytes, size: bytes.length }]
}

const hashOf = (result: Result | undefined) => (result?.sha256 === undefined ? {} : { sha256: result.sha256 })

/** Hashes files one at a time, because parallel reads are not faster on most disks. None after the signal. */
async function hashAll(entries: readonly Entry[], signal: AbortSignal): Promise<Result[]> {
  const results: Result[] = []
  for (const { name, open, fault } of entries) {
    const isOut = fault !== undefined || signal.aborted
    const file = isOut ? undefined : await open?.().catch(() => undefined)
    const sha256 = file && (await hashFile(file, signal))
    results.push({ name, ...(sha256 !== undefined && { sha256 }) })
  }
  return results
}

async function hashFile(file: HeldFile, signal: AbortSignal): Promise<string | undefined> {
  const hash = createHash('sha256')
  try {
    for await (const chunk of file.handle.createReadStream({ autoClose: false })) {
      if (signal.aborted) return undefined
      hash.update(chunk)
    }
    return hash.digest('hex')
  } finally {
    await file.close()
  }
}
