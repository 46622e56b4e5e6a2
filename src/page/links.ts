import { escapeHtml } from './html.ts'

export type Format = 'url' | 'markdown' | 'html' | 'bbcode'

export interface Link {
  readonly url: string
  readonly name: string
  readonly isImage: boolean
  /** When the file expires, as an RFC 3339 timestamp. Undefined: never. */
  readonly expiresAt?: string | undefined
}

/** Characters that move the cursor, end a line, or change the direction of the text that follows. */
export const CONTROLS = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu

/** Characters that are not allowed unencoded in a link: white space, invisible ones, and those that end a URL in some markup. */
const UNSAFE = /[\s\p{C}"'<>\\^`{|}]/gu
const LONGEST_LINK = 8192

/** Whether a value is a link that is safe in any text: an absolute http or https URL, percent-encoded. */
export function isLink(value: unknown): value is string {
  if (typeof value !== 'string' || value.length > LONGEST_LINK) return false
  return /^https?:\/\//i.test(value) && value.search(UNSAFE) === -1 && URL.canParse(value)
}

/** The same URL with every unsafe character percent-encoded. */
export function cleanLink(url: string): string {
  return url.replace(UNSAFE, toPercent)
}

/** Formats a link for pasting. Images are embedded, other files are linked. */
export function formatLink({ url, name: given, isImage }: Link, format: Format): string {
  const address = addressIn(url, format)
  const name = given.replace(CONTROLS, '?')
  if (format === 'markdown') return `${isImage ? '!' : ''}[${name.replace(/[[\]\\<`]/g, '\\$&')}](${address})`
  if (format === 'html') {
    const title = escapeHtml(name)
    return isImage ? `<img src="${address}" alt="${title}">` : `<a href="${address}">${title}</a>`
  }
  if (format === 'bbcode')
    return isImage ? `[img]${address}[/img]` : `[url=${address}]${name.replace(/[[\]]/g, '')}[/url]`
  return address
}

/** Characters that end a URL too early, or begin other markup, by format. */
const MARKUP = { markdown: /[()]/g, bbcode: /[[\]]/g }

/** Escapes a URL for a format. */
export function addressIn(given: string, format: Format): string {
  const url = cleanLink(given)
  if (format === 'url') return url
  if (format === 'html') return escapeHtml(url)
  // The brackets around an IPv6 address can't be percent-encoded.
  const [host = ''] = /^https?:\/\/\[[\da-f:.]+\]/i.exec(url) ?? []
  return host + url.slice(host.length).replace(MARKUP[format], toPercent)
}

function toPercent(character: string): string {
  const bytes = [...new TextEncoder().encode(character)]
  return bytes.map(byte => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')
}
