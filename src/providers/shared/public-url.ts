import * as z from '../../packages/zod.ts'

/** Allowed in a URL path, but an end of the link for Markdown, HTML attributes and shells. */
const TROUBLE = /[!'()*]/g

/** The public address objects are found below, as an option. */
export function urlPrefix() {
  return z
    .url({ protocol: /^https?$/, error: 'must be an http or https address' })
    .refine(url => !/[?#]/.test(url), 'must not have a query or a fragment: keys are appended to it')
}

/**
 * One part of a path. The result is its own normal form (WHATWG URL) and decodes back to what it was.
 *
 * @throws URIError when half of a surrogate pair stands alone
 */
export function encodeSegment(segment: string): string {
  return encodeURIComponent(segment).replace(TROUBLE, toPercent)
}

/** A key as the path of a URL, without a leading slash. The slashes stay, every segment is encoded. */
export function encodeKey(key: string): string {
  return key.split('/').map(encodeSegment).join('/')
}

/** The URL of a key. The prefix may end in a slash or not, and is put into normal form. */
export function joinUrl(prefix: string, key: string): string {
  return `${withoutSlash(cleanUrl(prefix))}/${encodeKey(key)}`
}

/** An address without slashes at its end. */
export function withoutSlash(url: string): string {
  return url.replace(/(?<!\/)\/+$/, '')
}

/** A URL in normal form, without characters that end a link in Markdown. */
export function cleanUrl(url: string): string {
  return new URL(url).href.replace(TROUBLE, toPercent)
}

/** What is appended to every URL, as an option: a query, or the name of a version of the picture. */
export function urlSuffix() {
  return z
    .string()
    .regex(/^[\w!$&+,./:;=?@%|~#-]+$/, 'must consist of characters that a URL may have')
    .describe('Appended to every URL.')
}

/** What PicGo appends to URLs, with characters that end a link percent-encoded. */
export function toUrlSuffix(options: string | undefined): string | undefined {
  return options?.toWellFormed().replace(/[^\w!$&+,./:;=?@%|~#-]/gu, encodeSegment)
}

function toPercent(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
}
