import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { decodeText } from '../../decode-text.ts'
import { messageOf } from '../../errors.ts'
import { REVIEW_SUFFIX } from '../../payload/file-name.ts'
import { oneLine, toJsonLine } from '../../safe-text.ts'
import type { Context } from '../context.ts'
import { type Entry, entryOfBytes, findEntries, MISSING, NO_FILES } from '../entries.ts'
import type { Uploads } from '../uploads.ts'
import { isWebAddress } from './format.ts'
import { type EarlierImages, hashImages, imagesOf } from './images.ts'
import { parseImages, readImages } from './read-results.ts'
import { failuresOf, type Review, type Run } from './review.ts'

/** Fetches a list, whose host may have a private IP address. @returns undefined if there is none. @throws UploadError */
export type FetchList = (link: string, signal: AbortSignal) => Promise<Uint8Array | undefined>

/**
 * Finds the images of a folder, or of a list, which is a file or a URL. Without it, there are none, as in the first run of a job.
 *
 * @throws Error
 */
export async function findEarlier(
  name: string,
  fetch: FetchList,
  context: Pick<Context, 'cwd' | 'platform' | 'stdin' | 'note'>,
  signal: AbortSignal,
): Promise<EarlierImages> {
  const shown = showName(name)
  const fail = (reason: string) => new Error(`--compare ${shown}: ${reason.replace(/\.$/, '')}.`)
  const none = (reason: string): EarlierImages => {
    context.note(oneLine(`--compare ${shown}: ${reason}. All images count as new.`))
    return { name: shown, images: [] }
  }
  if (isWebAddress(name)) {
    const bytes = await fetch(name, signal).catch(error => {
      throw fail(messageOf(error))
    })
    if (bytes === undefined) return none('the file does not exist')
    return { name: shown, host: new URL(name).host, ...parseImages(decodeText(bytes), oneLine(shown)) }
  }
  const status = await stat(resolve(context.cwd, name)).catch(() => undefined)
  if (status?.isFile()) return { name, ...(await readImages(name, context)) }
  const found = await findEntries([name], {}, context)
  const [fault] = found.flatMap(one => one.fault ?? [])
  const isEmpty = [MISSING, ...Object.values(NO_FILES)].includes(fault ?? '')
  if (fault !== undefined && found.length === 1 && isEmpty) return none(fault)
  if (fault !== undefined) throw fail(fault)
  return { name, images: await hashImages(imagesOf(found), signal) }
}

/** The report may be public, and a URL may contain a password or a signature. */
function showName(name: string): string {
  if (!isWebAddress(name)) return name
  const { origin, pathname } = new URL(name)
  return origin + pathname
}

/** Name of the file of a baseline. */
const fileOf = (baseline: string) => `${baseline}${REVIEW_SUFFIX}`

/** Finds the images that `--baseline` has stored at the destination. @throws Error if the destination can't be asked */
export async function findBaseline(
  name: string,
  uploads: Pick<Uploads, 'find'>,
  fetch: FetchList,
  note: Context['note'],
  signal: AbortSignal,
): Promise<EarlierImages> {
  const none = (reason: string): EarlierImages => {
    note(`${reason} All images count as new.`)
    return { name, images: [] }
  }
  const [link] = await uploads.find([{ name: fileOf(name) }], signal).catch(error => {
    throw new Error(`Could not look for the baseline "${name}": ${messageOf(error).replace(/\.$/, '')}.`)
  })
  if (link === undefined) return none(`There is no baseline "${name}" at this destination yet.`)
  const bytes = await fetch(link, signal).catch(error => {
    throw new Error(`Could not fetch the baseline "${name}": ${messageOf(error).replace(/\.$/, '')}.`)
  })
  try {
    if (bytes) return { name, host: new URL(link).host, ...parseImages(decodeText(bytes), '') }
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
  isForced: boolean,
  note: Context['note'],
): Entry | undefined {
  const failure = failuresOf(review)
  const isLate = !isForced && isOlder(review.run, review.baseline)
  const reason = failure ?? (isLate ? 'a later run has already stored it' : undefined)
  if (reason === undefined) return entryOfBytes(fileOf(name), Buffer.from(toJsonLine(review)))
  note(`The baseline "${name}" stays as it is: ${reason}.`)
  return undefined
}

const isOlder = (run: Run | undefined, other: Run | undefined) => (run?.id ?? Infinity) < (other?.id ?? 0)
