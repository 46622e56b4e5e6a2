import { decodeText } from '../../decode-text.ts'
import { isObject, membersOf } from '../../members.ts'
import { isLink, oneLine } from '../../safe-text.ts'
import type { Context } from '../context.ts'
import { readNamed } from '../read-at-most.ts'
import type { Result } from '../result.ts'
import type { Image } from './images.ts'
import { type Review, type ReviewRow, type Run, STATES } from './review.ts'

/** Maximum size of a list. */
const MOST_LIST_MIB = 64
export const MOST_LIST_BYTES = MOST_LIST_MIB * 1024 * 1024

/** Longer names and errors are cut. No file has a longer path, and each character takes 8 bytes in a comment. */
const MOST_CHARACTERS = 8192
const cut = (text: string) => text.slice(0, MOST_CHARACTERS)

/** Images of an earlier upload, and the run that uploaded them. */
export interface ImageList {
  readonly images: readonly Image[]
  readonly run?: Run
}

/**
 * Reads the output of `upload --format json` or `ndjson`, or what `upload --baseline` has stored.
 *
 * @param name of the file, or `-` for standard input
 */
export async function readImages(name: string, context: Pick<Context, 'cwd' | 'stdin'>): Promise<ImageList> {
  const shown = name === '-' ? 'standard input' : oneLine(name)
  return parseImages(decodeText(await readNamed(name, context, MOST_LIST_MIB, shown)), shown)
}

/** @param shown what the text was read from, for the message. @throws Error if it is another text */
export function parseImages(text: string, shown: string): ImageList {
  try {
    const isOne = /^\s*[[{]/.test(text) && !/^\s*\{[^\n]*\n\s*\{/.test(text)
    const value: unknown = isOne
      ? JSON.parse(text)
      : text.split('\n').flatMap(line => (line.trim() === '' ? [] : [JSON.parse(line)]))
    if (Array.isArray(value) && text.trim() !== '')
      return { images: value.map(one => ({ result: toResult(one) })) }
    if (!Array.isArray(membersOf(value)['rows'])) return { images: [{ result: toResult(value) }] }
    const { rows, run } = toReview(value)
    const images = rows.flatMap(({ name, state, after }) =>
      state === 'failed' || after === undefined ? [] : [{ result: after, inside: name }],
    )
    return { images, ...(run && { run }) }
  } catch {
    throw new Error(`Could not read ${shown}: it is not output of "upload-server upload --format json".`)
  }
}

/** Reads a review that was stored as JSON. @throws Error if it is something else */
export function parseReview(bytes: Uint8Array): Review {
  return toReview(JSON.parse(decodeText(bytes)))
}

function toReview(value: unknown): Review {
  const { rows, run, baseline } = membersOf(value)
  if (!Array.isArray(rows)) throw new Error('no review')
  const { name } = membersOf(baseline)
  return {
    rows: rows.map(toRow),
    run: toRun(run),
    ...(typeof name === 'string' && { baseline: { name: cut(name), ...toRun(baseline) } }),
  }
}

function toRow(value: unknown): ReviewRow {
  const { name, state: word, share, from, ...more } = membersOf(value)
  const state = STATES.find(one => one === word)
  if (typeof name !== 'string' || state === undefined) throw new Error('no row')
  const images = (['before', 'after', 'difference'] as const).flatMap(part =>
    isObject(more[part]) ? [[part, toResult(more[part])] as const] : [],
  )
  return {
    ...{ name: cut(name), state },
    ...Object.fromEntries(images),
    ...(typeof share === 'number' && share >= 0 && share <= 1 && { share }),
    ...(typeof from === 'string' && { from: cut(from) }),
  }
}

export function toRun(value: unknown): Run {
  const { commit, url, id } = membersOf(value)
  return {
    ...(typeof commit === 'string' && /^[\da-f]{7,64}$/i.test(commit) && { commit }),
    ...(isLink(url) && { url }),
    ...(Number.isSafeInteger(id) && { id: Number(id) }),
  }
}

/** Validates a result, because the file may come from others. */
function toResult(value: unknown): Result {
  const { name, url, small, error, ...more } = membersOf(value)
  if (typeof name !== 'string' || (url !== undefined && !isLink(url))) throw new Error('no result')
  const facts = ['size', 'width', 'height'].flatMap(key =>
    Number.isSafeInteger(more[key]) ? [[key, more[key]] as const] : [],
  )
  const words = ['sha256', 'contentType', 'code', 'finalizationId'].flatMap(key =>
    typeof more[key] === 'string' ? [[key, more[key]] as const] : [],
  )
  return {
    name: cut(name),
    ...(url !== undefined && { url }),
    ...(isLink(small) && { small }),
    ...(error !== undefined && { error: cut(String(error)) }),
    ...Object.fromEntries([...facts, ...words]),
  }
}
