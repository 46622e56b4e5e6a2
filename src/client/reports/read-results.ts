import { resolve } from 'node:path'
import { decodeText } from '../../decode-text.ts'
import { describeFileError } from '../../errors.ts'
import { isObject, membersOf } from '../../members.ts'
import { isLink, oneLine } from '../../safe-text.ts'
import type { Context } from '../context.ts'
import { readAtMost, readFileAtMost } from '../read-at-most.ts'
import type { Result } from '../result.ts'
import type { Located } from './pairs.ts'
import type { Run } from './review.ts'

/** Maximum size of a list, bytes. */
export const MOST_LIST_BYTES = 64 * 1024 * 1024

/** Longer names and errors are cut. No file has a longer path, and each character takes 8 bytes in a comment. */
const MOST_CHARACTERS = 8192
const cut = (text: string) => text.slice(0, MOST_CHARACTERS)

/** Images of an earlier upload, and the run that uploaded them. */
export interface ImageList {
  readonly images: readonly Located[]
  readonly run?: Run
}

/** Reads the output of `upload --format json` or `ndjson`. @param name of the file, or `-` for standard input */
export async function readResults(name: string, context: Pick<Context, 'cwd' | 'stdin'>): Promise<Result[]> {
  const { images } = await readImages(name, context)
  return images.map(({ result }) => result)
}

/** The same, or what `upload --baseline` has stored. */
export async function readImages(name: string, context: Pick<Context, 'cwd' | 'stdin'>): Promise<ImageList> {
  const isFile = name !== '-'
  const read = isFile
    ? readFileAtMost(resolve(context.cwd, name), MOST_LIST_BYTES)
    : readAtMost(context.stdin, MOST_LIST_BYTES)
  const shown = isFile ? oneLine(name) : 'Standard input'
  const bytes = await read.catch(error => {
    throw new Error(`Could not read ${shown}: ${describeFileError(error)}.`)
  })
  if (bytes === undefined) throw new Error(`${shown} is larger than 64 MiB.`)
  return parseImages(decodeText(bytes), shown)
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
    const { rows, run, ...result } = membersOf(value)
    if (!Array.isArray(rows)) return { images: [{ result: toResult(result) }] }
    return { images: rows.flatMap(toLocated), run: toRun(run) }
  } catch {
    throw new Error(`${shown} is not output of "upload-server upload --format json".`)
  }
}

/** The present image of a row of a review. */
function toLocated(row: unknown): Located[] {
  const { name, state, after } = membersOf(row)
  if (typeof name !== 'string') throw new Error('no row')
  return state === 'failed' || !isObject(after) ? [] : [{ result: toResult(after), inside: cut(name) }]
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
  const { name, url, error, ...more } = membersOf(value)
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
    ...(error !== undefined && { error: cut(String(error)) }),
    ...Object.fromEntries([...facts, ...words]),
  }
}
