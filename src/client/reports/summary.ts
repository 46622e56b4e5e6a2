import { bytes } from '../../log-lines.ts'
import { addressIn } from '../../page/client/links.ts'
import { toMarkdown, toMarkdownCode } from '../../safe-text.ts'
import { isFailure, type Result } from '../result.ts'
import { isImageLink, titleOf } from './format.ts'

/** Below the limit of 1 MiB for the summary of a step on GitHub. */
const MOST_BYTES = 1000 * 1024
/** Number of images in a row, and their width in pixels. */
const [COLUMNS, THUMBNAIL] = [4, 200]
/** Tables with more images than this are collapsible. */
const SHOWN = 12

/** The summary of a GitHub Actions run: totals, failures, other files as links, and images in a table. */
export function toSummary(results: readonly Result[], mostBytes = MOST_BYTES): string {
  const failed = results.filter(isFailure)
  const stored = results.filter(one => one.url !== undefined)
  const images = stored.filter(one => isImageLink(one.url ?? '', one))
  const others = stored.filter(one => !images.includes(one))
  const size = stored.reduce((sum, one) => sum + (one.size ?? 0), 0)
  const unfinished = results.filter(one => one.finalizationId !== undefined).length
  const totals = [
    `${stored.length} of ${results.length} stored${size > 0 ? `, ${bytes(size)}` : ''}`,
    ...(failed.length > 0 ? [`${failed.length} failed`] : []),
    ...(unfinished > 0 ? [`${unfinished} stored, completion pending`] : []),
  ]
  const blocks = [
    [`**${failed.length > 0 ? '❌ ' : ''}${totals.join(', ')}**`],
    failed.map(one => `- ❌ ${toMarkdownCode(one.name)}: ${toMarkdown(one.error ?? '')}`),
    others.map(one => `- [${toMarkdownCode(titleOf(one.name))}](${addressIn(one.url ?? '', 'markdown')})`),
    tableOf(images),
  ]
  const kept: string[][] = []
  let room = mostBytes
  for (const lines of blocks) {
    const fitting = lines.filter(line => {
      room -= Buffer.byteLength(line) + 1
      return room > 0
    })
    if (fitting.length > 0) kept.push(fitting)
  }
  const [totalsBlock = [], ...rest] = kept
  const cut = room > 0 ? [] : [['More files do not fit here.']]
  const isLong = images.length > SHOWN
  const table = isLong && images.length > 0 ? rest.pop() : undefined
  const folded = table && [
    `<details><summary>${images.length} images</summary>`,
    '',
    ...table,
    '',
    '</details>',
  ]
  return `${[totalsBlock, ...rest, ...(folded ? [folded] : []), ...cut].map(lines => lines.join('\n')).join('\n\n')}\n\n`
}

/** A table of images, each with its name below it. */
function tableOf(images: readonly Result[]): string[] {
  if (images.length === 0) return []
  const columns = Math.min(COLUMNS, images.length)
  const rows = Array.from({ length: Math.ceil(images.length / columns) }, (_, row) =>
    images.slice(row * columns, (row + 1) * columns),
  )
  return [
    `|${'   |'.repeat(columns)}`,
    `|${'---|'.repeat(columns)}`,
    ...rows.map(row => `| ${row.map(cellOf).join(' | ')} |`),
  ]
}

function cellOf({ url = '', name, width, height }: Result): string {
  const facts = width === undefined ? '' : ` (${width} × ${height})`
  return `${showImage(url, THUMBNAIL)}<br>${toMarkdownCode(titleOf(name))}${facts}`
}

/** An image that links to its full size. @param width pixels */
export function showImage(url: string, width: number): string {
  const address = addressIn(url, 'html')
  return `<a href="${address}"><img src="${address}" width="${width}"></a>`
}
