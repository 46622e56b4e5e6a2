/** Text that may stand in a document as it is. */
export interface Html {
  readonly html: string
}

/** `false` is left out. */
type Part = Html | string | number | false | readonly Part[]

/** Template tag: whatever is put in is escaped unless it is Html already. */
export function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return { html: texts.map((text, i) => text + show(parts[i] ?? false)).join('') }
}

/** A text with `code` between backticks. */
export function prose(text: string): Html {
  return { html: escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>') }
}

function show(part: Part): string {
  if (part === false) return ''
  if (typeof part === 'string' || typeof part === 'number') return escapeHtml(String(part))
  return 'html' in part ? part.html : part.map(show).join('')
}

function escapeHtml(text: string): string {
  return text
    .replace(/&/g, '&amp;')
    .replace(/</g, '&lt;')
    .replace(/>/g, '&gt;')
    .replace(/"/g, '&quot;')
    .replace(/'/g, '&#39;')
}
