export type Format = 'url' | 'markdown' | 'html' | 'bbcode'

export interface Link {
  readonly url: string
  readonly name: string
  readonly isImage: boolean
}

/** A link as it is pasted elsewhere: pictures are shown, other files linked. */
export function formatLink({ url, name, isImage }: Link, format: Format): string {
  const address = addressIn(url, format)
  if (format === 'markdown') return `${isImage ? '!' : ''}[${name.replace(/[[\]\\<`]/g, '\\$&')}](${address})`
  if (format === 'html') {
    const title = escapeHtml(name)
    return isImage ? `<img src="${address}" alt="${title}">` : `<a href="${address}">${title}</a>`
  }
  if (format === 'bbcode')
    return isImage ? `[img]${address}[/img]` : `[url=${address}]${name.replace(/[[\]]/g, '')}[/url]`
  return url
}

/** What ends an address before its end, or begins other markup. */
const MARKUP = { markdown: /[()]/g, bbcode: /[[\]]/g }

/** An address as a format takes it. */
export function addressIn(url: string, format: Format): string {
  if (format === 'url') return url
  if (format === 'html') return escapeHtml(url)
  // The brackets of an IPv6 address can't be written otherwise.
  const [host = ''] = /^https?:\/\/\[[\da-f:.]+\]/i.exec(url) ?? []
  return host + url.slice(host.length).replace(MARKUP[format], toPercent)
}

function toPercent(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
}

function escapeHtml(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;')
}
