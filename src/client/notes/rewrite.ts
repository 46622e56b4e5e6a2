import { addressIn } from '../../page/links.ts'
import type { Reference } from './references.ts'

/** A reference and the URL that replaces it. */
export interface NewLink {
  readonly reference: Reference
  readonly url: string
}

/** Replaces references with links. The rest of the note does not change. */
export function rewrite(note: string, links: readonly NewLink[]): string {
  const pieces: string[] = []
  let at = 0
  for (const { reference, url } of links) {
    pieces.push(note.slice(at, reference.from), toText(reference, url, note))
    at = reference.to
  }
  return pieces.join('') + note.slice(at)
}

function toText({ kind, from, to }: Reference, url: string, note: string): string {
  if (kind === 'address') return addressIn(url, 'markdown')
  if (kind === 'attribute') return addressIn(url, 'html')
  if (kind === 'bare') {
    const address = addressIn(url, 'html')
    // Without quotes, these characters would end the value or the tag.
    return /[=\s]|\/$/.test(address) ? `"${address}"` : address
  }
  return `![${altOf(note.slice(from + 3, to - 2))}](${addressIn(url, 'markdown')})`
}

/** The text after the vertical bar of an embed, or the file name if that text is only a size. */
function altOf(embed: string): string {
  const [target = '', bar = '', rest = ''] = embed.split(/(\\?\|)(.*)/s)
  const name = (target.replace(/#.*/s, '').trim().split(/[\\/]/).at(-1) ?? '').replace(/[\\<`]/g, '\\$&')
  if (rest === '') return name
  return /^\s*\d+(?:x\d+)?\s*$/.test(rest) ? `${name}${bar}${rest}` : rest.replace(/[<`]/g, '\\$&')
}

/** The changed lines in the format of `diff -U0`. Both texts must have the same number of lines. */
export function toDiff(before: string, after: string): string {
  const now = after.split('\n')
  const changes = before.split('\n').map((line, index) => {
    const at = index + 1
    return line === now[index] ? [] : [`@@ -${at} +${at} @@`, `-${line}`, `+${now[index]}`]
  })
  return changes.flat().join('\n')
}
