import { createHash } from 'node:crypto'
import { basename, parse } from 'node:path'
import { UploadError } from '../../errors.ts'
import type { HeldFile } from '../../files/held.ts'
import { mapConcurrently } from '../../flow/map-concurrently.ts'
import type { Area, Dimensions } from '../../payload/dimensions.ts'
import { oneLine } from '../../safe-text.ts'
import type { Context } from '../context.ts'
import { type Entry, entryOfBytes } from '../entries.ts'
import { readAtMost } from '../read-at-most.ts'
import { isFailure, type Result } from '../result.ts'
import type { Masks } from './masks.ts'
import { type Located, type Paired, pair } from './pairs.ts'
import { MOST_SHOWN, type Review, type ReviewRow, type Run, type State, shownOf, sortRows } from './review.ts'

export interface FoundDifference {
  /** Share of the pixels that have changed, 0 to 1. */
  readonly share: number
  readonly before: Dimensions
  readonly after: Dimensions
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
  options: { readonly drawnFrom: number; readonly masks?: readonly Area[] },
) => Promise<FoundDifference | undefined>

export interface CompareOptions {
  /** The present run. */
  readonly run?: Run | undefined
  readonly findDifference: FindDifference
  /** Percentage of changed pixels up to which an image counts as the same. */
  readonly threshold: number
  /** Parts of images that are not compared. Default: none. */
  readonly masks?: Masks | undefined
  readonly makeSmall: MakeSmall
}

/**
 * Makes a smaller copy of an image for a comment, as WebP. It is passed in for the same reason.
 *
 * @param most width and height, pixels
 * @returns undefined if the image is small enough, or can't be decoded
 * @throws UploadError `destination_failed` if no image can be decoded
 */
export type MakeSmall = (
  image: Uint8Array,
  most: number,
  signal: AbortSignal,
) => Promise<Uint8Array | undefined>

/** Maximum width and height of such a copy, pixels: about twice what is shown, for screens with small pixels. */
const SMALL = 760

/** Earlier images: those of a folder or a list. */
export interface EarlierImages {
  /** What the user named. Undefined: there are none to compare with. */
  readonly name?: string
  /** The run that stored them. */
  readonly run?: Run
  readonly images: readonly EarlierImage[]
}

export interface EarlierImage extends Located {
  /** A local file, which must be uploaded to be shown. */
  readonly entry?: Entry
  /** @returns undefined if it can't be read, or is larger than so many bytes */
  read(mostBytes: number, signal: AbortSignal): Promise<Uint8Array | undefined>
}

/** Pairs that are read at the same time. Fewer are compared: see pictures/processes.ts. */
const AT_ONCE = 4

/** Larger files are compared by their bytes. Bytes. */
const MOST_BYTES = 64 * 1024 * 1024

/** A comparison before anything is uploaded. */
export interface Prepared {
  /** What must be uploaded in addition: earlier images that have changed, and the images of the differences. */
  readonly entries: readonly Entry[]
  /**
   * @param results of the present images
   * @param more results of `entries`
   */
  conclude(results: readonly Result[], more: readonly Result[]): Review
}

/** Compares earlier images with the files to upload. It compares the local files, because a server may change images. */
export async function prepareReview(
  { name, images, run }: EarlierImages,
  now: readonly Entry[],
  options: CompareOptions,
  context: Pick<Context, 'note'>,
  signal: AbortSignal,
): Promise<Prepared> {
  const hashed = await hashAll(now, signal)
  const paired = pair(
    images,
    now.map((entry, index) => locate(entry, hashed[index])),
  )
  const readNow = (index = -1) => now[index] && readEntry(now[index], MOST_BYTES)
  const read = ({ before = -1, after, expected }: Paired) =>
    Promise.all([images[before]?.read(MOST_BYTES, signal) ?? readNow(expected), readNow(after)])
  const changed = paired.filter(({ state, before }) => state === 'changed' && before !== undefined)
  const differences = await findDifferences(changed, read, options, context, signal)
  const plans = paired.map((one): Plan => {
    const { before = -1, after = -1 } = one
    const found = differences.get(one)
    if (found && found.share * 100 <= options.threshold) return { ...one, state: 'same' }
    const earlier = one.state === 'changed' ? images[before]?.entry : undefined
    const image = toEntry(now[after], found?.image)
    return {
      ...one,
      ...(found && { found }),
      // If object keys don't depend on the content, it would otherwise replace the new image of the same name.
      ...(earlier && { earlier: { ...earlier, fileName: `before-${basename(earlier.path)}` } }),
      ...(image && { image }),
    }
  })
  const smaller = await makeSmaller(plans, read, options.makeSmall, signal)
  const entries = (signal.aborted ? [] : plans).flatMap(plan =>
    [plan.earlier, plan.image, ...Object.values(smaller.get(plan) ?? {})].filter(one => one !== undefined),
  )
  return {
    entries,
    conclude(results, more) {
      const uploads = new Map(entries.map((entry, index) => [entry, more[index]]))
      const uploadOf = (entry: Entry | undefined) => entry && uploads.get(entry)
      const rows = plans.map((plan): ReviewRow => {
        const { name, state, from, found, earlier, image, ...at } = plan
        const after = results[at.after ?? -1]
        if (after && isFailure(after)) return { name, state: 'failed', after }
        const former = images[at.before ?? -1]?.result ?? results[at.expected ?? -1]
        const drawn = uploadOf(image) ?? results[at.difference ?? -1]
        const isShown = state === 'changed' || state === 'gone'
        const small = smaller.get(plan)
        const show = (image: Result, size: Dimensions | undefined, small: Entry | undefined): Result => {
          const url = uploadOf(small)?.url
          return { ...image, ...size, ...(url !== undefined && { small: url }) }
        }
        const before = { ...former, name, ...uploadOf(earlier), ...hashOf(former) }
        return {
          ...{ name, state },
          ...(former && isShown && { before: show(before, found?.before, small?.before) }),
          ...(after && {
            after: show({ ...after, ...hashOf(hashed[at.after ?? -1]) }, found?.after, small?.after),
          }),
          ...(drawn && { difference: show(drawn, undefined, small?.difference) }),
          ...(found && { share: found.share }),
          ...(from !== undefined && { from }),
        }
      })
      return {
        rows: sortRows(rows),
        ...(name !== undefined && { baseline: { name, ...run } }),
        ...(options.run && { run: options.run }),
      }
    },
  }
}

/** An image of a comparison, and what is uploaded to show it. */
interface Plan extends Paired {
  readonly found?: FoundDifference
  readonly earlier?: Entry
  readonly image?: Entry
}

/** The smaller copies of one row. */
interface Smaller {
  readonly before?: Entry | undefined
  readonly after?: Entry | undefined
  readonly difference?: Entry | undefined
}

/** Makes smaller copies of the images that a comment shows. If that fails, it shows the images themselves. */
async function makeSmaller(
  plans: readonly Plan[],
  read: (one: Paired) => Promise<readonly (Uint8Array | undefined)[]>,
  makeSmall: MakeSmall,
  signal: AbortSignal,
): Promise<ReadonlyMap<Plan, Smaller>> {
  const smaller = new Map<Plan, Smaller>()
  const shareOf = ({ found }: Plan) => found?.share ?? 1
  const inState = (wanted: State) => plans.filter(({ state }) => state === wanted)
  const changed = inState('changed').sort((a, b) => shareOf(b) - shareOf(a))
  const isSmall = ({ found }: Plan) =>
    found !== undefined &&
    [found.before, found.after].every(({ width, height }) => Math.max(width, height) <= SMALL)
  const shown = [...shownOf(changed), ...inState('new').slice(0, MOST_SHOWN)]
  let isOff = false
  await mapConcurrently(shown, AT_ONCE, async plan => {
    const make = async (bytes: Uint8Array | undefined, what: string): Promise<Entry | undefined> => {
      const small = bytes && (await makeSmall(bytes, SMALL, signal))
      if (small === undefined) return undefined
      return entryOfBytes(`small-${what}-${parse(plan.name).name}.webp`, small)
    }
    try {
      if (isOff || signal.aborted || isSmall(plan)) return
      const [before, after] = await read(plan)
      smaller.set(plan, {
        before: await make(before, 'before'),
        after: await make(after, 'after'),
        difference: await make(plan.found?.image, 'difference'),
      })
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof UploadError)) throw error
      isOff ||= error.code === 'destination_failed'
    }
  })
  return smaller
}

/** The differences of pairs of images. Pairs without one are compared by their bytes. */
async function findDifferences(
  pairs: readonly Paired[],
  read: (one: Paired) => Promise<readonly (Uint8Array | undefined)[]>,
  { findDifference, threshold, masks }: CompareOptions,
  { note }: Pick<Context, 'note'>,
  signal: AbortSignal,
): Promise<ReadonlyMap<Paired, FoundDifference>> {
  const differences = new Map<Paired, FoundDifference>()
  const faults: string[] = []
  let isOff = false
  await mapConcurrently(pairs, AT_ONCE, async one => {
    if (isOff || signal.aborted) return
    const images = await read(one).catch((error: unknown) => {
      if (!(error instanceof UploadError)) throw error
      faults.push(error.message)
      return []
    })
    const [before, after] = images
    if (before === undefined || after === undefined) return
    try {
      const drawn = [...differences.values()].filter(({ image }) => image !== undefined)
      const least = drawn.length < MOST_SHOWN ? 0 : Math.min(...drawn.map(({ share }) => share))
      const difference = await findDifference(before, after, signal, {
        drawnFrom: Math.max(least, threshold / 100),
        masks: masks?.(one.name) ?? [],
      })
      if (difference === undefined) return
      differences.set(one, difference)
      dropImage(differences)
    } catch (error) {
      if (signal.aborted || isOff) return
      if (!(error instanceof UploadError)) throw error
      isOff = true
      note(oneLine(`${error.message} The bytes of images are compared, not their pixels.`))
    }
  })
  if (faults.length > 0)
    note(
      oneLine(
        `${faults.length} earlier images count as changed, because they could not be fetched: ${faults[0]}`,
      ),
    )
  return differences
}

/** Drops the image of the smallest difference if there are too many, because all of them are in memory. */
function dropImage(differences: Map<Paired, FoundDifference>): void {
  const shown = [...differences].filter(([, { image }]) => image !== undefined)
  if (shown.length <= MOST_SHOWN) return
  const [least] = shown.sort(([, a], [, b]) => a.share - b.share)
  if (least === undefined) return
  const [one, { image: _, ...difference }] = least
  differences.set(one, difference)
}

export const locate = ({ name, inside }: Entry, result: Result = { name }): Located => ({ result, inside })

/** The bytes of a local file. @returns undefined if it can't be read, or is larger than that */
export async function readEntry({ open, bytes }: Entry, mostBytes: number): Promise<Uint8Array | undefined> {
  if (bytes !== undefined) return bytes.length > mostBytes ? undefined : bytes
  const file = await open?.().catch(() => undefined)
  if (file === undefined) return undefined
  try {
    return await readAtMost(file.handle.createReadStream({ autoClose: false }), mostBytes)
  } finally {
    await file.close()
  }
}

function toEntry(entry: Entry | undefined, bytes: Uint8Array | undefined): Entry | undefined {
  if (entry === undefined || bytes === undefined) return undefined
  return entryOfBytes(`difference-${parse(entry.path).name}.png`, bytes)
}

const hashOf = (result: Result | undefined) => (result?.sha256 === undefined ? {} : { sha256: result.sha256 })

/** Hashes files one at a time, because parallel reads are not faster on most disks. None after the signal. */
export async function hashAll(entries: readonly Entry[], signal: AbortSignal): Promise<Result[]> {
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
