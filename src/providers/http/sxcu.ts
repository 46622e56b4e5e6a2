import { readFileSync } from 'node:fs'
import { decodeText } from '../../decode-text.ts'
import { systemCode } from '../../errors.ts'
import { type Members, membersOf } from '../../members.ts'
import { isCredential } from './credentials.ts'
import { withoutBodyHeaders } from './description.ts'
import type { HostDescription } from './options.ts'
import { literal } from './template.ts'

type Texts = Record<string, string>

/** The last version of ShareX that writes `$json:path$` instead of `{json:path}`. */
const LAST_WITH_DOLLARS = '13.7.1'

/** Placeholders for `%name` in parameters, headers and arguments: the dates and times of ShareX. */
const PATTERNS: Texts = {
  yy: 'y',
  y: 'Y',
  mo: 'm',
  mi: 'i',
  ms: 'ms',
  d: 'd',
  h: 'h',
  s: 's',
  unix: 'timestampS',
  guid: 'uuid',
}

/**
 * Reads a custom uploader of ShareX.
 *
 * @throws Error about a member that is not supported. Its message follows the name of the file
 */
export function readSxcu(path: string): HostDescription {
  let text: string
  try {
    text = decodeText(readFileSync(path))
  } catch (error) {
    throw new Error(`can't be read (${systemCode(error) ?? 'no reason given'}).`)
  }
  return parseSxcu(text)
}

/**
 * Translates the text of such a file to a description (getsharex.com/docs/custom-uploader).
 *
 * @throws Error whose message follows the name of the file
 */
export function parseSxcu(text: string): HostDescription {
  const file = readObject(text)
  const read = (name: string) => asText(file[name])
  const method = (read('RequestMethod') || read('RequestType') || 'POST').toUpperCase()
  if (method !== 'POST' && method !== 'PUT' && method !== 'PATCH')
    throw new Error(`has the method "${method}", which can't send a file. Use POST, PUT or PATCH.`)
  if (read('RegexList') !== '')
    throw new Error('has a "RegexList". Import it in ShareX 13.7.2 or newer, and export it again.')
  const convert = hasDollars(read('Version')) ? replaceDollars : (old: string) => old
  const readTexts = (name: string) =>
    Object.entries(membersOf(file[name])).map(([key, value]) => [key, asText(value)] as const)
  const convertTexts = (name: string) =>
    Object.fromEntries(readTexts(name).map(([key, value]) => [key, fillPatterns(convert(value))]))
  const url = read('RequestURL')
  const place = (name: string) => (/[${]/.test(read(name)) ? convert(read(name)) : undefined)
  return {
    method,
    ...readBody(read('Body'), read('FileFormName')),
    url: convert(/^https?:\/\//i.test(url) ? url : `https://${url}`),
    query: convertTexts('Parameters'),
    headers: withoutBodyHeaders(convertTexts('Headers')),
    fields: convertTexts('Arguments'),
    resultUrl: readResult(convert(read('URL')), read('ResponseType')),
    deleteUrl: place('DeletionURL'),
    errorMessage: place('ErrorMessage'),
    secrets: listSecrets(['Parameters', 'Headers', 'Arguments'].flatMap(readTexts)),
  }
}

function readObject(text: string): Members {
  try {
    return membersOf(JSON.parse(text.replace(/^\uFEFF/, '')))
  } catch {
    throw new Error('is not valid JSON.')
  }
}

function asText(value: unknown): string {
  return value === undefined || value === null ? '' : String(value)
}

/** Files of versions without `Body` are always forms. */
function readBody(body: string, field: string): Pick<HostDescription, 'body' | 'field'> {
  if (body === 'Binary') return { body: 'raw' }
  if (body !== 'MultipartFormData' && !(body === '' && field !== ''))
    throw new Error(
      `has the body "${body || 'None'}", which can't contain a file. Use MultipartFormData or Binary.`,
    )
  if (field === '') throw new Error('has no "FileFormName", the name of the form field. Add it to the file.')
  return { body: 'multipart', field }
}

/** Without `URL`, the response is the URL. */
function readResult(url: string, responseType: string): string {
  if (url !== '' && !url.includes('{'))
    throw new Error('has a "URL" without a placeholder, so every file would have the same URL.')
  return url || (responseType === 'RedirectionURL' ? '{responseurl}' : '{response}')
}

/** Files without a version are older than all versions. */
function hasDollars(version: string): boolean {
  return version.localeCompare(LAST_WITH_DOLLARS, 'en', { numeric: true }) <= 0
}

/** Replaces `$json:url$` with `{json:url}`, and escapes literal braces. */
function replaceDollars(text: string): string {
  let inside = false
  return text.replace(/\\(.?)|[${}]/gs, (found, escaped: string | undefined) => {
    if (escaped !== undefined) return literal(escaped)
    if (found !== '$') return `\\${found}`
    inside = !inside
    return inside ? '{' : '}'
  })
}

function fillPatterns(text: string): string {
  return text.replace(/%(guid|unix|mo(?!n)|mi|ms|yy|y|d|h|s)/g, (_, name: string) => `{${PATTERNS[name]}}`)
}

/** Returns values to mask in messages. The format does not mark secrets, so they are detected by their names and their form. */
function listSecrets(texts: readonly (readonly [name: string, value: string])[]): Texts {
  const words = texts.flatMap(([name, value]) =>
    value.split(/[\s:{}|$]+/).filter(word => word.length >= (isCredential(name) ? 4 : 20)),
  )
  return Object.fromEntries(words.map((word, index) => [String(index), word]))
}
