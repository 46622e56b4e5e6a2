import { addressIn } from '../../page/links.ts'
import { toMarkdown, toMarkdownCode } from '../../safe-text.ts'
import type { Comparison, Pair } from '../reports/pairs.ts'
import { showImage, toSummary } from '../reports/summary.ts'
import { isFailure, type Result } from '../result.ts'

/** Below the 65,536 characters that GitHub accepts, including the marker of the comment. */
const MOST_BYTES = 60_000
/** Width of each of the images shown side by side, pixels. */
const WIDTH = 260
/** If more images have changed, the others are collapsible, by folder. */
const SHOWN = 6

/** The Markdown of a comment: changed images before and after, other images as in a summary. */
export function toBody(title: string, results: readonly Result[], comparison?: Comparison): string {
  const heading = `### ${toMarkdown(title)}\n\n`
  if (comparison === undefined) return heading + toSummary(results, MOST_BYTES)
  if (isAllTheSame(comparison)) return `**${toMarkdown(title)}**: ${totalsOf(comparison)}\n`
  const { changed, added, gone } = comparison
  const parts = [
    `**${totalsOf(comparison)}**`,
    ...(changed.length > 0 ? [showAll(changed, MOST_BYTES / 2)] : []),
    ...(added.length > 0 ? [toSummary(added, MOST_BYTES / 4).trimEnd()] : []),
    ...(gone.length > 0 ? [listOf(gone, MOST_BYTES / 8)] : []),
  ]
  return `${heading}${parts.join('\n\n')}\n`
}

/** Numbers of images that have changed, are new, are gone, failed, or are the same. */
export function countsOf({ changed, same, added, gone }: Comparison) {
  const failed = added.filter(isFailure).length
  return { changed: changed.length, new: added.length - failed, gone: gone.length, failed, 'the same': same }
}

/** Such as "3 changed · 1 new · 509 the same". */
export function totalsOf(comparison: Comparison): string {
  const totals = Object.entries(countsOf(comparison)).filter(([, count]) => count > 0)
  return totals.map(([word, count]) => `${count} ${word}`).join(' · ') || 'nothing to compare'
}

export function isAllTheSame({ changed, added, gone }: Comparison): boolean {
  return changed.length + added.length + gone.length === 0
}

/** The changed images, the most changed first. Those after the first ones are collapsible, by folder. */
function showAll(pairs: readonly Pair[], mostBytes: number): string {
  let room = mostBytes
  let left = 0
  const takeFitting = (some: readonly Pair[]): string => {
    const { fitting, left: more } = takeLines(some.map(show), room)
    const text = fitting.join('\n')
    room -= Buffer.byteLength(text)
    left += more
    return text
  }
  const parts = [takeFitting(pairs.slice(0, SHOWN))]
  for (const [folder, some] of byFolder(pairs.slice(SHOWN))) {
    const summary = `<details><summary>${toMarkdownCode(folder)}: ${some.length} changed</summary>`
    room -= Buffer.byteLength(summary) + AROUND_BYTES
    const text = room > 0 ? takeFitting(some) : ''
    if (text === '') left += room > 0 ? 0 : some.length
    else parts.push(`${summary}\n\n${text}\n</details>`)
  }
  if (left > 0) parts.push(`${left} more changed. They do not fit into this comment.`)
  return parts.map(part => part.trimEnd()).join('\n\n')
}

/** Bytes of the end of a collapsible part, and of the line breaks around it. */
const AROUND_BYTES = 20

function byFolder(pairs: readonly Pair[]): Map<string, Pair[]> {
  const folders = new Map<string, Pair[]>()
  for (const pair of pairs) {
    const segments = pair.after.name.split(/[\\/]/)
    const folder = segments.slice(0, -1).join('/') || '.'
    folders.set(folder, [...(folders.get(folder) ?? []), pair])
  }
  return folders
}

/** The name and the size of the difference, and the images below it. */
function show({ before, after, difference }: Pair): string {
  const share = difference === undefined ? '' : `: ${percent(difference.share)} of the pixels changed`
  const cells = [
    ['Before', imageCellOf(before)],
    ['After', imageCellOf(after)],
    ...(difference?.image ? [['Difference', imageCellOf(difference.image)]] : []),
  ]
  const rows = [cells.map(([head]) => head), cells.map(() => '---'), cells.map(([, cell]) => cell)]
  const table = rows.map(row => `| ${row.join(' | ')} |`).join('\n')
  return `${toMarkdownCode(after.name)}${share}\n\n${table}\n`
}

/** At least 0.01 %, because 0 % would mean that nothing has changed. */
const percent = (share: number) =>
  `${Math.max(share * 100, 0.01).toLocaleString('en', { maximumFractionDigits: 2 })} %`

function imageCellOf({ url, error, width, height }: Result): string {
  if (url === undefined) return `❌ ${toMarkdown(error ?? '')}`
  const facts = width === undefined ? '' : `<br>${width} × ${height}`
  return showImage(url, WIDTH) + facts
}

function listOf(gone: readonly Result[], mostBytes: number): string {
  const { fitting, left } = takeLines(
    gone.map(({ name, url }) =>
      url === undefined
        ? `- gone: ${toMarkdownCode(name)}`
        : `- gone: [${toMarkdownCode(name)}](${addressIn(url, 'markdown')})`,
    ),
    mostBytes,
  )
  return [...fitting, ...(left > 0 ? [`- and ${left} more`] : [])].join('\n')
}

/** The first texts that fit into the limit, and the number of the others. */
function takeLines(texts: readonly string[], mostBytes: number): { fitting: string[]; left: number } {
  let room = mostBytes
  const end = texts.findIndex(text => {
    room -= Buffer.byteLength(text) + 1
    return room < 0
  })
  const fitting = end < 0 ? [...texts] : texts.slice(0, end)
  return { fitting, left: texts.length - fitting.length }
}
