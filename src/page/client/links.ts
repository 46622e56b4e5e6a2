export type Format = 'url' | 'markdown' | 'html' | 'bbcode'

export interface Link {
  readonly url: string
  readonly name: string
  readonly isImage: boolean
}

/** A link as it is pasted elsewhere: pictures are shown, other files linked. */
export function formatLink({ url, name, isImage }: Link, format: Format): string {
  if (format === 'markdown') return `${isImage ? '!' : ''}[${name.replace(/[[\]\\]/g, '\\$&')}](${url})`
  if (format === 'html') {
    const [address, title] = [escapeHtml(url), escapeHtml(name)]
    return isImage ? `<img src="${address}" alt="${title}">` : `<a href="${address}">${title}</a>`
  }
  if (format === 'bbcode')
    return isImage ? `[img]${url}[/img]` : `[url=${url}]${name.replace(/[[\]]/g, '')}[/url]`
  return url
}

function escapeHtml(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;')
}
