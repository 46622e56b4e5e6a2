import { fileURLToPath } from 'node:url'
import { messageOf, UploadError } from '../errors.ts'
import { isObject } from '../members.ts'
import type { Input } from '../uploader/input.ts'
import { decodeDataUri } from '../uploader/sources/data-uri.ts'
import { shorten } from './error-handler.ts'

const CLIPBOARD: readonly Input[] = [{ kind: 'clipboard', origin: 'clipboard' }]

/**
 * Parses the JSON body of an upload. It doesn't open the files. An empty body, `null`, `{}`, `[]` or an empty list means the
 * clipboard, because PicGo's clients send these. Any other object without a list is an error.
 *
 * @throws UploadError `invalid_request` that names every invalid entry, `too_large` for too many entries
 */
export function parseList(body: Buffer, maxFiles: number): readonly Input[] {
  const text = body.toString('utf8').replace(/^\ufeff/, '')
  if (text.trim() === '') return CLIPBOARD
  assertSmall(body, maxFiles, tooMany)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw invalid(/^\s*[{[]/.test(text) ? describeBroken(text.slice(0, LOOKED_AT)) : NEITHER)
  }
  if (value === null || (Array.isArray(value) && value.length === 0)) return CLIPBOARD
  if (!isObject(value) || Array.isArray(value)) {
    throw invalid('The JSON body must be an object such as {"list": ["/path/to/file.png"]}.')
  }
  const list: unknown = Object.hasOwn(value, 'list') ? value['list'] : undefined
  const [other] = Object.keys(value)
  if (list === undefined && other !== undefined) throw noList(other)
  if (list === undefined || list === null) return CLIPBOARD
  if (!Array.isArray(list)) throw invalid('"list" must be an array of file paths or URLs.')
  if (list.length === 0) return CLIPBOARD
  if (list.length > maxFiles) throw tooMany(maxFiles)
  return parseEntries(list)
}

/** Limits of the JSON body: nesting, and values other than the entries of the list. */
const MOST_DEPTH = 64
const MOST_OTHER_VALUES = 10_000

const [QUOTE, COMMA, OPEN_LIST, BACKSLASH, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = Buffer.from('",[\\]{}')

/** Checks a body before it is parsed, because parsed values can take 50 times the memory of their JSON. */
export function assertSmall(
  body: Buffer,
  maxFiles: number,
  tooMany: (maxFiles: number) => UploadError,
): void {
  const most = maxFiles + MOST_OTHER_VALUES
  let depth = 0
  let values = 0
  for (let at = 0; at < body.length; at++) {
    const byte = body[at]
    if (byte === QUOTE) at = endOfString(body, at)
    else if (byte === COMMA) values++
    else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth--
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      values++
      depth++
    }
    if (depth > MOST_DEPTH) throw invalid(`The JSON body is nested deeper than ${MOST_DEPTH} levels.`)
    if (values > most) throw tooMany(maxFiles)
  }
}

/** The index of the closing quote. */
function endOfString(body: Buffer, start: number): number {
  let at = start + 1
  while (at < body.length && body[at] !== QUOTE) at += body[at] === BACKSLASH ? 2 : 1
  return at
}

/** Maximum number of characters of an invalid body that are checked for the reason. */
const LOOKED_AT = 64 * 1024

const NEITHER =
  'The body is neither a form nor JSON. Send multipart/form-data with a file, or {"list": ["/path/to/file.png"]}.'

/** Explains invalid JSON. The most frequent cause is a Windows path with single backslashes. */
function describeBroken(text: string): string {
  return /(?<!\\)(?:\\\\)*\\(?!["\\/bfnrt]|u[0-9a-f]{4})/i.test(text)
    ? 'The body is not valid JSON: write each \\ of a path as \\\\.'
    : 'The body is not valid JSON: check for an extra or missing comma, quotation mark or bracket.'
}

function noList(other: string): UploadError {
  const name = shorten(other, MOST_SHOWN)
  return invalid(
    `The JSON body has "${name}" but no "list". Send {"list": ["/path/to/file.png"]}, or {} to upload the clipboard.`,
  )
}

/** The error for a request with more files than it may have. */
export function tooMany(maxFiles: number): UploadError {
  return new UploadError(
    'too_large',
    `A request may have up to ${maxFiles} files (limits.files). Send several requests.`,
  )
}

function parseEntries(list: unknown[]): readonly Input[] {
  const problems: string[] = []
  const inputs = list.flatMap((entry, index): Input[] => {
    try {
      return [parseEntry(entry)]
    } catch (error) {
      problems.push(`list[${index}] ${messageOf(error)}`)
      return []
    }
  })
  if (problems.length === 0) return inputs
  const shown = problems.slice(0, 10).join('; ')
  const more = problems.length > 10 ? `; and ${problems.length - 10} more` : ''
  throw invalid(`Nothing was uploaded: ${shown}${more}.`)
}

/** Maximum length of a path or URL, characters. No system opens longer ones, and each is repeated in the response and the log. */
const MOST_CHARACTERS = 16 * 1024

/** @throws Error whose message continues the name of the entry */
function parseEntry(entry: unknown): Input {
  if (typeof entry !== 'string')
    throw new Error(`is ${entry === null ? 'null' : `a ${typeof entry}`}, not a string`)
  if (entry.trim() === '') throw new Error('is blank')
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(entry)?.[1]?.toLowerCase()
  if (scheme !== 'data' && entry.length > MOST_CHARACTERS)
    throw new Error(`is longer than ${MOST_CHARACTERS} characters`)
  if (scheme === 'http' || scheme === 'https') return { kind: 'url', origin: entry, url: parseUrl(entry) }
  if (scheme === 'data') return { kind: 'data', origin: entry, bytes: parseData(entry) }
  if (scheme === 'file') return { kind: 'path', origin: entry, path: parseFileUrl(entry) }
  if (entry.startsWith('/') || entry.startsWith('\\\\') || /^[a-z]:[\\/]/i.test(entry)) {
    return { kind: 'path', origin: entry, path: entry }
  }
  if (scheme)
    throw new Error(
      `has the unknown scheme "${shorten(scheme, MOST_SHOWN)}:"; use a file path or an http, https, file or data URL`,
    )
  if (/^(["']).*\1$/s.test(entry)) throw new Error('contains quotation marks: remove them')
  // An Obsidian plugin drops the first slash on Linux and macOS.
  throw new Error(
    `"${shorten(entry, MOST_SHOWN)}" is not an absolute path on the server: its first "/" is missing, or it is relative (relative paths and ~ are not expanded)`,
  )
}

function parseUrl(entry: string): URL {
  if (!/^https?:\/\/[^/\\]/i.test(entry) || !URL.canParse(entry)) throw new Error('is not a valid URL')
  return new URL(entry)
}

function parseData(entry: string): Buffer {
  try {
    return decodeDataUri(entry).bytes
  } catch {
    throw new Error('is not a valid data: URL')
  }
}

function parseFileUrl(entry: string): string {
  try {
    return fileURLToPath(entry)
  } catch {
    throw new Error('is not a file: URL of this machine')
  }
}

/** Enough to know it again, characters. */
const MOST_SHOWN = 80

function invalid(message: string): UploadError {
  return new UploadError('invalid_request', message)
}
