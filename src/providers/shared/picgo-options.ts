import { completeProxy, parseProxy } from '../../http/proxy/address.ts'
import { encodeSegment, withoutSlash } from './public-url.ts'

/** A name with a part of its hash, since PicGo's own would replace each other. Who imports says so. */
export const HASHED_NAME = '{filename}-{sha256-8}{extname}'

/** Options of PicGo as ours, and what of them is lost. */
export interface Translated {
  options: Record<string, unknown>
  notes: string[]
}

/** PicGo's address of a proxy as ours; undefined when there is none, or none that can be used, which the notes say. */
export function readProxy(value: unknown, notes: string[]): string | undefined {
  const text = readText(value)
  if (text === undefined) return undefined
  const proxy = completeProxy(text)
  if (parseProxy(proxy)) return proxy
  notes.push('"proxy" was left out: it is no address of a proxy for HTTP, HTTPS or SOCKS5.')
  return undefined
}

/** A text of PicGo's configuration, or a number as one, without blanks around it; undefined when nothing is left. */
export function readText(value: unknown): string | undefined {
  const text = typeof value === 'number' ? String(value) : typeof value === 'string' ? value.trim() : ''
  return text === '' ? undefined : text
}

/** PicGo's `customUrl` as our `urlPrefix`; what is no web address is left out with a note. */
export function readAddress(value: unknown, notes: string[], name = 'customUrl'): string | undefined {
  const address = readText(value)
  if (address === undefined) return undefined
  if (/^https?:\/\/[^?#]+$/i.test(address) && URL.canParse(address)) return withoutSlash(address)
  notes.push(`"${name}" was left out: it is no web address to which names can be appended.`)
  return undefined
}

/**
 * PicGo's `path`, a folder in front of names, as a key template.
 *
 * @param placeholders what stands for some parts of the path
 */
export function readFolder(
  value: unknown,
  notes: string[],
  placeholders: Readonly<Record<string, string>> = {},
): string {
  const segments = splitPath(readText(value))
  const isPlain = segments.every(segment => segment !== '..' && !/[{}\u0000-\u001f]/.test(segment))
  if (!isPlain) notes.push('"path" was left out: it cannot be the beginning of a key.')
  const folders = isPlain ? segments.map(segment => placeholders[segment] ?? segment) : []
  return [...folders, HASHED_NAME].join('/')
}

/** The names of a path, whichever kind of slash is between them. */
export function splitPath(path = ''): string[] {
  return path
    .toWellFormed()
    .split(/[\\/]+/)
    .filter(segment => segment !== '' && segment !== '.')
}

/** PicList's `customUrl`, or what stands in for it, with a folder below it. */
export function joinAddress(
  base: string | undefined,
  folder: readonly string[],
  notes: string[],
): string | undefined {
  if (base === undefined) return undefined
  const hasScheme = /^https?:\/\//i.test(base)
  if (!hasScheme) notes.push('"customUrl" has no scheme, so https is assumed: check "urlPrefix".')
  return [withoutSlash(hasScheme ? base : `https://${base}`), ...folder.map(encodeSegment)].join('/')
}
