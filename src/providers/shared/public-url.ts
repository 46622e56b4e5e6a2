import { webUrl } from '../../options.ts'
import * as z from '../../packages/zod.ts'

/** Characters that are allowed in a URL path but end a link in Markdown, HTML attributes or shells. */
const LINK_ENDINGS = /[!'()*]/g

/** Option for the public base URL of the objects. */
export function urlPrefix() {
  return webUrl().refine(
    url => !/[?#]/.test(url),
    'must not have a query or a fragment, because object keys are appended to it',
  )
}

/**
 * Encodes one segment of a path. The result is in normal form (WHATWG URL) and decodes to the segment.
 *
 * @throws URIError for a lone surrogate
 */
export function encodeSegment(segment: string): string {
  return encodeURIComponent(segment).replace(LINK_ENDINGS, toPercent)
}

/** Encodes an object key as the path of a URL, without a leading slash. Slashes are kept; each segment is encoded. */
export function encodeKey(key: string): string {
  return key.split('/').map(encodeSegment).join('/')
}

/** Returns the URL of an object key, in normal form. The prefix may end with a slash. */
export function joinUrl(prefix: string, key: string): string {
  return `${withoutSlash(cleanUrl(prefix))}/${encodeKey(key)}`
}

/** Returns a sentence about an endpoint whose path ends with the name that is appended to it, or undefined. */
export function findDoubledName(endpoint: string, what: string, name: string): string | undefined {
  const isDoubled = withoutSlash(new URL(endpoint).pathname).endsWith(`/${encodeSegment(name)}`)
  return isDoubled ? `"endpoint" already contains the ${what}. Remove "/${name}" from it.` : undefined
}

/** Removes slashes at the end of a URL. */
export function withoutSlash(url: string): string {
  return url.replace(/(?<!\/)\/+$/, '')
}

/** Returns a URL in normal form, without characters that end a link in Markdown. */
export function cleanUrl(url: string): string {
  return new URL(url).href.replace(LINK_ENDINGS, toPercent)
}

/** Option for text appended to every URL: a query, or the name of an image style. */
export function urlSuffix() {
  return z
    .string()
    .regex(/^[\w!$&+,./:;=?@%|~#-]+$/, 'must contain only characters that are valid in a URL')
    .describe('Text appended to every URL.')
}

/** Translates PicGo's URL suffix: characters that end a link are percent-encoded. */
export function toUrlSuffix(options: string | undefined): string | undefined {
  return options?.toWellFormed().replace(/[^\w!$&+,./:;=?@%|~#-]/gu, encodeSegment)
}

function toPercent(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
}
