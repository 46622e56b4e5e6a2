import { basename, parse } from 'node:path'
import { messageOf, UploadError } from '../../errors.ts'
import { mapConcurrently } from '../../flow/map-concurrently.ts'
import type { Area, Dimensions } from '../../payload/dimensions.ts'
import { oneLine } from '../../safe-text.ts'
import type { Context } from '../context.ts'
import { type Entry, entryOfBytes } from '../entries.ts'
import type { FetchLink } from '../fetch-link.ts'
import { isFailure, type Result } from '../result.ts'
import type { SoughtFile } from '../uploads.ts'
import { type EarlierImages, hashImages, type Image, readImage } from './images.ts'
import type { Masks } from './masks.ts'
import { type Paired, pair } from './pairs.ts'
import { MOST_SHOWN, type Review, type ReviewRow, type Run, type State, sortRows } from './review.ts'

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

export interface CompareOptions {
  /** The present run. */
  readonly run?: Run | undefined
  readonly findDifference: FindDifference
  /** Undefined if nothing can be uploaded: then nothing is drawn or made smaller. */
  readonly makeSmall: MakeSmall | undefined
  /** Percentage of changed pixels up to which an image counts as the same. */
  readonly threshold: number
  /** Parts of images that are not compared. Default: none. */
  readonly masks?: Masks | undefined
  readonly fetch: FetchLink
  /** Makes new links of earlier images whose links may have expired. */
  readonly find?: ((files: readonly SoughtFile[]) => Promise<readonly (string | undefined)[]>) | undefined
  readonly note: Context['note']
}

/** Maximum width and height of a smaller copy, pixels: about twice what is shown, for screens with small pixels. */
const SMALL = 760

/** Pairs that are read at the same time. Fewer are compared: see pictures/processes.ts. */
const AT_ONCE = 4

/** Larger files are compared by their bytes. Bytes. */
const MOST_BYTES = 64 * 1024 * 1024

/** After so many images that could not be read, the others are compared by their hashes. */
const MOST_FAULTS = 10

/** A comparison before anything is uploaded. */
export interface Prepared {
  /** What must be uploaded in addition: earlier images that have changed, the images of the differences, and smaller copies. */
  readonly entries: readonly Entry[]
  /**
   * @param results of the present images
   * @param more results of `entries`. Empty if nothing can be uploaded
   */
  conclude(results: readonly Result[], more: readonly Result[]): Review
}

/** Compares earlier images with present ones: local files if there are some, because a server may change images, or else links. */
export async function prepareReview(
  { name, images, run }: EarlierImages,
  present: readonly Image[],
  options: CompareOptions,
  signal: AbortSignal,
): Promise<Prepared> {
  const now = await hashImages(present, signal)
  const paired = await renewLinks(pair(images, now), options)
  const read: Read = ({ before, expected, after }) => {
    const both = [before ?? expected, after]
    return Promise.all(both.map(image => image && readImage(image, MOST_BYTES, options.fetch, signal)))
  }
  const differences = await findDifferences(paired, read, options, signal)
  const plans = paired.map((one): Plan => {
    const found = differences.get(one)
    if (found && found.share * 100 <= options.threshold) return { ...one, state: 'same' }
    const former = one.state === 'changed' ? one.before?.entry : undefined
    return {
      ...one,
      ...(found && { found }),
      // If object keys don't depend on the content, it would otherwise replace the new image of the same name.
      ...(former && { earlier: { ...former, fileName: `before-${basename(former.path)}` } }),
      ...(found?.image && { drawn: entryOfBytes(`difference-${parse(one.name).name}.png`, found.image) }),
    }
  })
  const smaller = await makeSmaller(plans, read, options, signal)
  const entries = (signal.aborted ? [] : plans).flatMap(plan =>
    [plan.earlier, plan.drawn, ...Object.values(smaller.get(plan) ?? {})].filter(one => one !== undefined),
  )

  /** @param resultOf the result of a present image, or of one of `entries` */
  function toRow(plan: Plan, resultOf: (one: Image | Entry | undefined) => Result | undefined): ReviewRow {
    const { name, state, from, found } = plan
    const after = resultOf(plan.after)
    if (after && isFailure(after)) return { name, state: 'failed', after }
    const former = plan.before?.result ?? resultOf(plan.expected)
    const drawn = resultOf(plan.drawn) ?? resultOf(plan.difference)
    const isShown = state === 'changed' || state === 'gone'
    const small = smaller.get(plan)
    const show = (image: Result, size: Dimensions | undefined, small: Entry | undefined): Result => {
      const url = resultOf(small)?.url
      return { ...image, ...size, ...(url !== undefined && { small: url }) }
    }
    const before = { ...former, name, ...resultOf(plan.earlier), ...hashOf(former) }
    return {
      ...{ name, state },
      ...(former && isShown && { before: show(before, found?.before, small?.before) }),
      ...(after && {
        after: show({ ...after, ...hashOf(plan.after?.result) }, found?.after, small?.after),
      }),
      ...(drawn && { difference: show(drawn, undefined, small?.difference) }),
      ...(found && { share: found.share }),
      ...(from !== undefined && { from }),
    }
  }

  return {
    entries,
    conclude(results, more) {
      const stored = new Map<unknown, Result | undefined>([
        ...now.map((image, index) => [image, results[index]] as const),
        ...entries.map((entry, index) => [entry, more[index]] as const),
      ])
      return {
        rows: sortRows(plans.map(plan => toRow(plan, one => stored.get(one)))),
        ...(name !== undefined && { baseline: { name, ...run } }),
        ...(options.run && { run: options.run }),
      }
    },
  }
}

/** An image of a comparison, and what is uploaded to show it: the earlier image, and the difference. */
interface Plan extends Paired {
  readonly found?: FoundDifference
  readonly earlier?: Entry
  readonly drawn?: Entry
}

/** The smaller copies of one row. */
type Copies = Partial<Record<'before' | 'after' | 'difference', Entry>>

/** Reads the earlier and the present image. @throws UploadError */
type Read = (one: Paired) => Promise<readonly (Uint8Array | undefined)[]>

/** As many files as the server finds in one request. */
const MOST_RENEWED = 1000

/** Signed links expire. Those of images that are shown are made again, if the server can do it; others stay as they are. */
async function renewLinks(
  paired: readonly Paired[],
  { find, note }: CompareOptions,
): Promise<readonly Paired[]> {
  const signed = paired.flatMap(one => {
    const { url = '', name = '', sha256, size } = one.before?.result ?? {}
    const isShown = one.state === 'changed' || one.state === 'gone'
    const isSigned = URL.canParse(url) && new URL(url).search !== ''
    if (!isShown || !isSigned || sha256 === undefined || size === undefined) return []
    return [{ one, file: { name: basename(name), sha256, size } }]
  })
  const some = signed.slice(0, MOST_RENEWED)
  if (!find || some.length === 0) return paired
  const links = await find(some.map(({ file }) => file)).catch(
    (error: Error) => void note(oneLine(error.message)),
  )
  const renewed = new Map(some.map(({ one }, index) => [one, links?.[index]]))
  return paired.map(one => {
    const [url, before] = [renewed.get(one), one.before]
    return url && before ? { ...one, before: { ...before, result: { ...before.result, url } } } : one
  })
}

/** Makes smaller copies of the images that a comment shows. If that fails, it shows the images themselves. */
async function makeSmaller(
  plans: readonly Plan[],
  read: Read,
  { makeSmall }: CompareOptions,
  signal: AbortSignal,
): Promise<ReadonlyMap<Plan, Copies>> {
  const smaller = new Map<Plan, Copies>()
  const shareOf = ({ found }: Plan) => found?.share ?? 1
  const inState = (wanted: State) => plans.filter(({ state }) => state === wanted)
  const changed = inState('changed').sort((a, b) => shareOf(b) - shareOf(a))
  const isSmall = ({ found }: Plan) =>
    found !== undefined &&
    [found.before, found.after].every(({ width, height }) => Math.max(width, height) <= SMALL)
  const shown = [changed, inState('new')].flatMap(some => some.slice(0, MOST_SHOWN))
  let isOff = makeSmall === undefined
  await mapConcurrently(shown, AT_ONCE, async plan => {
    try {
      if (isOff || signal.aborted || isSmall(plan)) return
      const [before, after] = await read(plan)
      const copies: Copies = {}
      for (const [part, bytes] of Object.entries({ before, after, difference: plan.found?.image })) {
        const small = bytes && (await makeSmall?.(bytes, SMALL, signal))
        const name = `small-${part}-${parse(plan.name).name}.webp`
        if (small) copies[part as keyof typeof copies] = entryOfBytes(name, small)
      }
      smaller.set(plan, copies)
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
  paired: readonly Paired[],
  read: Read,
  { findDifference, makeSmall, threshold, masks, note }: CompareOptions,
  signal: AbortSignal,
): Promise<ReadonlyMap<Paired, FoundDifference>> {
  const differences = new Map<Paired, FoundDifference>()
  const faults: string[] = []
  let isOff = false
  const pairs = paired.filter(({ state, before }) => state === 'changed' && before !== undefined)
  await mapConcurrently(pairs, AT_ONCE, async one => {
    if (isOff || signal.aborted || faults.length >= MOST_FAULTS) return
    const images = await read(one).catch((error: unknown) => {
      if (!(error instanceof UploadError) && !signal.aborted) throw error
      faults.push(messageOf(error))
      return []
    })
    const [before, after] = images
    if (before === undefined || after === undefined) return
    try {
      const drawn = [...differences.values()].filter(({ image }) => image !== undefined)
      const least = drawn.length < MOST_SHOWN ? 0 : Math.min(...drawn.map(({ share }) => share))
      const difference = await findDifference(before, after, signal, {
        drawnFrom: makeSmall ? Math.max(least, threshold / 100) : Infinity,
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
  if (faults.length > 0 && !signal.aborted)
    note(oneLine(`${faults.length} images count as changed, because they could not be fetched: ${faults[0]}`))
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

const hashOf = (result: Result | undefined) => (result?.sha256 === undefined ? {} : { sha256: result.sha256 })
