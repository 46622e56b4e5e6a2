import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { decodeText } from '../../decode-text.ts'
import { messageOf } from '../../errors.ts'
import { REVIEW_SUFFIX } from '../../payload/file-name.ts'
import { oneLine, toJsonLine } from '../../safe-text.ts'
import type { Context } from '../context.ts'
import { type Entry, entryOfBytes, findEntries, isMissing, NO_FILES } from '../entries.ts'
import { createFetch, type FetchLink } from '../fetch-link.ts'
import { isFailure, type Result } from '../result.ts'
import type { Uploads } from '../uploads.ts'
import { type EarlierImages, hashAll, locate, readEntry } from './compare.ts'
import { isWebAddress } from './format.ts'
import { type ImageList, MOST_LIST_BYTES, parseImages, readImages } from './read-results.ts'
import type { Review, Run } from './review.ts'

/**
 * Finds the images of a folder, or of a list, which is a file or a URL. Without it, there are none, as in the first run of a job.
 *
 * @param hosts that may have private IP addresses
 * @throws Error
 */
export async function findEarlier(
  name: string,
  hosts: readonly string[],
  context: Pick<Context, 'cwd' | 'platform' | 'env' | 'stdin' | 'note'>,
  signal: AbortSignal,
): Promise<EarlierImages> {
  const shown = showName(name)
  const fail = (reason: string) => new Error(`--compare ${shown}: ${reason.replace(/\.$/, '')}.`)
  const none = (reason: string): EarlierImages => {
    context.note(oneLine(`--compare ${shown}: ${reason}. All images count as new.`))
    return { name: shown, images: [] }
  }
  if (isWebAddress(name)) {
    const fetch = createFetch(context, [...hosts, new URL(name).host])
    const bytes = await fetch(name, MOST_LIST_BYTES, signal).catch(error => {
      throw fail(messageOf(error))
    })
    if (bytes === undefined) return none('the file does not exist')
    return toEarlier(shown, parseImages(decodeText(bytes), oneLine(shown)), fetch)
  }
  const status = await stat(resolve(context.cwd, name)).catch(() => undefined)
  if (status?.isFile()) return toEarlier(name, await readImages(name, context), createFetch(context, hosts))
  const found = await findEntries([name], {}, context)
  const [fault] = found.flatMap(one => one.fault ?? [])
  const isEmpty = isMissing(fault) || Object.values(NO_FILES).includes(fault ?? '')
  if (fault !== undefined && found.length === 1 && isEmpty) return none(fault)
  if (fault !== undefined) throw fail(fault)
  const hashed = await hashAll(found, signal)
  const images = found.map((entry, index) => ({
    ...locate(entry, hashed[index]),
    entry,
    read: (mostBytes: number) => readEntry(entry, mostBytes),
  }))
  return { name, images }
}

/** The report may be public, and a URL may contain a password or a signature. */
function showName(name: string): string {
  if (!isWebAddress(name)) return name
  const { origin, pathname } = new URL(name)
  return origin + pathname
}

/** The images of a list. Only those that have changed are fetched. */
function toEarlier(name: string, { images, run }: ImageList, fetch: FetchLink): EarlierImages {
  return {
    name,
    ...(run && { run }),
    images: images.map(image => ({
      ...image,
      read: async (mostBytes, signal) =>
        image.result.url === undefined ? undefined : fetch(image.result.url, mostBytes, signal),
    })),
  }
}

/** Name of the file of a baseline. */
const fileOf = (baseline: string) => `${baseline}${REVIEW_SUFFIX}`

/** Finds the images that `--baseline` has stored at the destination. @throws Error if the destination can't be asked */
export async function findBaseline(
  name: string,
  uploads: Pick<Uploads, 'findReview'>,
  hosts: readonly string[],
  context: Pick<Context, 'env' | 'note'>,
  signal: AbortSignal,
): Promise<EarlierImages> {
  const none = (reason: string): EarlierImages => {
    context.note(`${reason} All images count as new.`)
    return { name, images: [] }
  }
  const link = await uploads.findReview(fileOf(name), signal).catch(error => {
    throw new Error(`Could not look for the baseline "${name}": ${messageOf(error).replace(/\.$/, '')}.`)
  })
  if (link === undefined) return none(`There is no baseline "${name}" at this destination yet.`)
  const fetch = createFetch(context, [...hosts, new URL(link).host])
  const bytes = await fetch(link, MOST_LIST_BYTES, signal).catch(error => {
    throw new Error(`Could not fetch the baseline "${name}": ${messageOf(error).replace(/\.$/, '')}.`)
  })
  try {
    if (bytes) return toEarlier(name, parseImages(decodeText(bytes), ''), fetch)
  } catch {
    // Only the next run of the default branch can fix it.
  }
  return none(`The baseline "${name}" is gone or damaged.`)
}

/**
 * The file that becomes the baseline.
 *
 * @param isForced whether it may replace that of a later run
 * @returns undefined if it stays as it is; why is noted, except for another branch
 */
export function toBaseline(
  name: string,
  review: Review,
  results: readonly Result[],
  isForced: boolean,
  { note }: Pick<Context, 'note'>,
): Entry | undefined {
  const failed = results.filter(isFailure).length
  const stays = (reason: string) => note(`The baseline "${name}" stays as it is: ${reason}.`)
  if (failed > 0) return void stays(`${failed} of ${results.length} files failed`)
  if (!isForced && isOlder(review.run, review.baseline))
    return void stays('a later run has already stored it')
  return entryOfBytes(fileOf(name), Buffer.from(toJsonLine(review)))
}

const isOlder = (run: Run | undefined, other: Run | undefined) => (run?.id ?? Infinity) < (other?.id ?? 0)
