import { completeProxy, parseProxy } from '../../http/proxy/address.ts'
import { encodeSegment, withoutSlash } from './public-url.ts'

/** A name with a part of the hash, because files with PicGo's names would replace each other. The import reports it. */
export const HASHED_NAME = '{filename}-{sha256-8}{extname}'

/** Translated options of PicGo, with notes about options that can't be imported. */
export interface Translated {
  options: Record<string, unknown>
  notes: string[]
}

/** Translates PicGo's proxy URL. Undefined if there is none, or if it is invalid, which a note reports. */
export function readProxy(value: unknown, notes: string[]): string | undefined {
  const text = readTextOption(value)
  if (text === undefined) return undefined
  const proxy = completeProxy(text)
  if (parseProxy(proxy)) return proxy
  notes.push('"proxy" was not imported: it is not the URL of an HTTP, HTTPS or SOCKS5 proxy.')
  return undefined
}

/** Reads a string or a number of PicGo's configuration as trimmed text. Undefined if it is empty. */
export function readTextOption(value: unknown): string | undefined {
  const text = typeof value === 'number' ? String(value) : typeof value === 'string' ? value.trim() : ''
  return text === '' ? undefined : text
}

/** Translates PicGo's `customUrl` to `urlPrefix`. Anything but an http or https URL is omitted, with a note. */
export function readAddress(value: unknown, notes: string[], name = 'customUrl'): string | undefined {
  const address = readTextOption(value)
  if (address === undefined) return undefined
  if (/^https?:\/\/[^?#]+$/i.test(address) && URL.canParse(address)) return withoutSlash(address)
  notes.push(`"${name}" was not imported: it is not an http or https URL that file names can be appended to.`)
  return undefined
}

/**
 * Translates PicGo's `path`, a folder before file names, to a key template.
 *
 * @param placeholders replacements for some segments of the path
 */
export function readPathTemplate(
  value: unknown,
  notes: string[],
  placeholders: Readonly<Record<string, string>> = {},
): string {
  const segments = splitPath(readTextOption(value))
  const isPlain = segments.every(segment => segment !== '..' && !/[{}\u0000-\u001f]/.test(segment))
  if (!isPlain) notes.push('"path" was not imported: it is not a valid prefix of an object key.')
  const folders = isPlain ? segments.map(segment => placeholders[segment] ?? segment) : []
  return [...folders, HASHED_NAME].join('/')
}

/** Splits a path at slashes of either kind. */
export function splitPath(path = ''): string[] {
  return path
    .toWellFormed()
    .split(/[\\/]+/)
    .filter(segment => segment !== '' && segment !== '.')
}

/** Joins PicList's `customUrl`, or a substitute, and a folder. */
export function joinAddress(
  base: string | undefined,
  folder: readonly string[],
  notes: string[],
): string | undefined {
  if (base === undefined) return undefined
  const hasScheme = /^https?:\/\//i.test(base)
  if (!hasScheme) notes.push('"customUrl" has no scheme, so https was assumed. Check "urlPrefix".')
  return [withoutSlash(hasScheme ? base : `https://${base}`), ...folder.map(encodeSegment)].join('/')
}
