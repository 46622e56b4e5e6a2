import { addressIn } from '../../page/links.ts'
import { toMarkdown, toMarkdownCode } from '../../safe-text.ts'
import type { Comparison, Pair } from '../reports/pairs.ts'
import { showImage, toSummary } from '../reports/summary.ts'
import { isFailure, type Result } from '../result.ts'

/** Below the 65,536 characters that GitHub accepts, including the marker of the comment. */
const MOST_BYTES = 60_000
/** Width of each of two images shown side by side, pixels. */
const HALF = 380
/** Tables with more rows than this are collapsible. */
const SHOWN = 10

/** The Markdown of a comment: changed images before and after, other images as in a summary. */
export function toBody(title: string, results: readonly Result[], comparison?: Comparison): string {
  const heading = `### ${toMarkdown(title)}\n\n`
  if (comparison === undefined) return heading + toSummary(results, MOST_BYTES)
  const { changed, same, added, gone } = comparison
  const failed = added.filter(isFailure).length
  const counts = [
    [changed.length, 'changed'],
    [added.length - failed, 'new'],
    [gone.length, 'gone'],
    [same, 'the same'],
    [failed, 'failed'],
  ] as const
  const totals = counts.flatMap(([count, word]) => (count > 0 ? [`${count} ${word}`] : []))
  const parts = [
    `**${totals.join(', ') || 'nothing to compare'}**`,
    ...(changed.length > 0 ? [tableOf(changed, MOST_BYTES / 2)] : []),
    ...(added.length > 0 ? [toSummary(added, MOST_BYTES / 4).trimEnd()] : []),
    ...(gone.length > 0 ? [listOf(gone, MOST_BYTES / 8)] : []),
  ]
  return `${heading}${parts.join('\n\n')}\n`
}

function tableOf(pairs: readonly Pair[], mostBytes: number): string {
  const { fitting, left } = takeFitting(pairs.map(rowOf), mostBytes)
  const table = ['| | Before | After |', '|---|---|---|', ...fitting].join('\n')
  const rest = left > 0 ? `\n\n${left} more changed. They do not fit into this comment.` : ''
  if (pairs.length <= SHOWN) return table + rest
  return `<details open><summary>${pairs.length} images</summary>\n\n${table}${rest}\n\n</details>`
}

function rowOf({ before, after }: Pair): string {
  return `| ${toMarkdownCode(after.name)} | ${imageCellOf(before)} | ${imageCellOf(after)} |`
}

function imageCellOf({ url, error, width, height }: Result): string {
  if (url === undefined) return `❌ ${toMarkdown(error ?? '')}`
  const facts = width === undefined ? '' : `<br>${width} × ${height}`
  return showImage(url, HALF) + facts
}

function listOf(gone: readonly Result[], mostBytes: number): string {
  const { fitting, left } = takeFitting(
    gone.map(({ name, url }) =>
      url === undefined
        ? `- gone: ${toMarkdownCode(name)}`
        : `- gone: [${toMarkdownCode(name)}](${addressIn(url, 'markdown')})`,
    ),
    mostBytes,
  )
  return [...fitting, ...(left > 0 ? [`- and ${left} more`] : [])].join('\n')
}

/** The first lines that fit into the limit, and the number of the other lines. */
function takeFitting(lines: readonly string[], mostBytes: number): { fitting: string[]; left: number } {
  let room = mostBytes
  const end = lines.findIndex(line => {
    room -= Buffer.byteLength(line) + 1
    return room < 0
  })
  const fitting = end < 0 ? [...lines] : lines.slice(0, end)
  return { fitting, left: lines.length - fitting.length }
}
