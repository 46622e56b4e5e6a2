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

/** Number of unchanged lines that a diff shows around a change. */
const CONTEXT = 3

/** The changed hunks in the format of `diff -u`. Both texts must have the same number of lines. */
export function toDiff(before: string, after: string): string {
  const [old, now] = [before.split('\n'), after.split('\n')]
  const changed = old.flatMap((line, index) => (line === now[index] ? [] : [index]))
  const lines: string[] = []
  for (let first = 0; first < changed.length; ) {
    let last = first
    while (gapBehind(changed, last) <= 2 * CONTEXT) last++
    const from = Math.max(0, (changed[first] ?? 0) - CONTEXT)
    const to = Math.min(old.length, (changed[last] ?? 0) + CONTEXT + 1)
    lines.push(`@@ -${from + 1},${to - from} +${from + 1},${to - from} @@`, ...toHunk(old, now, from, to))
    first = last + 1
  }
  return lines.join('\n')
}

/** Number of lines from one change to the next. */
function gapBehind(changed: readonly number[], index: number): number {
  const [here, next] = [changed[index], changed[index + 1]]
  return here === undefined || next === undefined ? Number.POSITIVE_INFINITY : next - here
}

function toHunk(old: readonly string[], now: readonly string[], from: number, to: number): string[] {
  const lines: string[] = []
  const added: string[] = []
  for (let index = from; index < to; index++) {
    if (old[index] !== now[index]) {
      lines.push(`-${old[index]}`)
      added.push(`+${now[index]}`)
    } else lines.push(...added.splice(0), ` ${old[index]}`)
  }
  return [...lines, ...added]
}
