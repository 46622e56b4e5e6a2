/** Markup that needs no escaping. */
export interface Html {
  readonly html: string
}

/** `false` is omitted. */
type Part = Html | string | number | false | readonly Part[]

/** Template tag: escapes every inserted value that is not already Html. */
export function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return { html: texts.map((text, i) => text + show(parts[i] ?? false)).join('') }
}

/** A text with `code` between backticks and **labels** between asterisks. */
export function prose(text: string): Html {
  return {
    html: escapeHtml(text)
      .replace(/`([^`]+)`/g, '<code>$1</code>')
      .replace(/\*\*([^*]+)\*\*/g, '<b>$1</b>'),
  }
}

function show(part: Part): string {
  if (part === false) return ''
  if (typeof part === 'string' || typeof part === 'number') return escapeHtml(String(part))
  return 'html' in part ? part.html : part.map(show).join('')
}

export function escapeHtml(text: string): string {
  return text
    .replace(/&/g, '&amp;')
    .replace(/</g, '&lt;')
    .replace(/>/g, '&gt;')
    .replace(/"/g, '&quot;')
    .replace(/'/g, '&#39;')
}
