import { addressIn } from '../../page/links.ts'
import { toMarkdown, toMarkdownCode } from '../../safe-text.ts'
import { isAllTheSame, type Review, type ReviewRow, rowsIn, totalsOf } from '../reports/review.ts'
import { showImage, toSummary } from '../reports/summary.ts'
import type { Result } from '../result.ts'

/** Below the 65,536 characters that GitHub accepts, including the marker of the comment. */
const MOST_BYTES = 60_000
/** Width of each of the images shown side by side, pixels. */
const WIDTH = 260
/** If more images have changed, the others are collapsible, by folder. */
const SHOWN = 6

/** The Markdown of a comment: changed images before and after, other images as in a summary. */
export function toBody(title: string, results: readonly Result[], review?: Review): string {
  const heading = `### ${toMarkdown(title)}\n\n`
  if (review === undefined) return heading + toSummary(results, MOST_BYTES)
  if (isAllTheSame(review)) return `**${toMarkdown(title)}**: ${totalsOf(review)}\n`
  const changed = rowsIn(review, 'changed')
  const added = rowsIn(review, 'new', 'failed').flatMap(({ after }) => after ?? [])
  const moved = rowsIn(review, 'renamed', 'gone')
  const parts = [
    `**${totalsOf(review)}**`,
    ...(changed.length > 0 ? [showAll(changed, MOST_BYTES / 2)] : []),
    ...(added.length > 0 ? [toSummary(added, MOST_BYTES / 4).trimEnd()] : []),
    ...(moved.length > 0 ? [listOf(moved, MOST_BYTES / 8)] : []),
  ]
  return `${heading}${parts.join('\n\n')}\n`
}

/** The changed images, the most changed first. Those after the first ones are collapsible, by folder. */
function showAll(pairs: readonly ReviewRow[], mostBytes: number): string {
  let room = mostBytes
  let left = 0
  const takeFitting = (some: readonly ReviewRow[]): string => {
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

function byFolder(pairs: readonly ReviewRow[]): Map<string, ReviewRow[]> {
  const folders = new Map<string, ReviewRow[]>()
  for (const pair of pairs) {
    const segments = pair.name.split('/')
    const folder = segments.slice(0, -1).join('/') || '.'
    folders.set(folder, [...(folders.get(folder) ?? []), pair])
  }
  return folders
}

/** The name and the size of the difference, and the images below it. */
function show({ name, before, after, difference, share }: ReviewRow): string {
  const changed = share === undefined ? '' : `: ${percent(share)} of the pixels changed`
  const cells = [
    ['Before', imageCellOf(before)],
    ['After', imageCellOf(after)],
    ...(difference ? [['Difference', imageCellOf(difference)]] : []),
  ]
  const rows = [cells.map(([head]) => head), cells.map(() => '---'), cells.map(([, cell]) => cell)]
  const table = rows.map(row => `| ${row.join(' | ')} |`).join('\n')
  return `${toMarkdownCode(name)}${changed}\n\n${table}\n`
}

/** At least 0.01 %, because 0 % would mean that nothing has changed. */
const percent = (share: number) =>
  `${Math.max(share * 100, 0.01).toLocaleString('en', { maximumFractionDigits: 2 })} %`

function imageCellOf({ url, error, width, height }: Partial<Result> = {}): string {
  if (url === undefined) return `❌ ${toMarkdown(error ?? '')}`
  const facts = width === undefined ? '' : `<br>${width} × ${height}`
  return showImage(url, WIDTH) + facts
}

function listOf(rows: readonly ReviewRow[], mostBytes: number): string {
  const { fitting, left } = takeLines(
    rows.map(({ name, state, from, before }) => {
      const code = toMarkdownCode(name)
      if (from !== undefined) return `- renamed: ${toMarkdownCode(from)} to ${code}`
      return `- ${state}: ${before?.url === undefined ? code : `[${code}](${addressIn(before.url, 'markdown')})`}`
    }),
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
