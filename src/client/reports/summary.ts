import { bytes } from '../../log-lines.ts'
import { addressIn } from '../../page/links.ts'
import { toMarkdown, toMarkdownCode } from '../../safe-text.ts'
import { isFailure, type Result } from '../result.ts'
import { isImageLink, isWebAddress, titleOf } from './format.ts'

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
  const names = shortNames(stored)
  let room = mostBytes
  let isCut = false
  /** The first lines that fit into a part of the room. Others must find room, too. */
  const takeFitting = (lines: readonly string[], part: number): string[] => {
    let left = room * part
    const end = lines.findIndex(line => {
      left -= Buffer.byteLength(line) + 1
      return left < 0
    })
    const fitting = end < 0 ? [...lines] : lines.slice(0, end)
    isCut ||= end >= 0
    room -= fitting.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0)
    return fitting
  }
  const blocks = [
    [`**${failed.length > 0 ? '❌ ' : ''}${totals.join(', ')}**`],
    takeFitting(
      failed.map(one => `- ❌ ${toMarkdownCode(one.name)}: ${toMarkdown(one.error ?? '')}`),
      1 / 2,
    ),
    takeFitting(
      others.map(
        one => `- [${toMarkdownCode(names.get(one) ?? '')}](${addressIn(one.url ?? '', 'markdown')})`,
      ),
      1 / 2,
    ),
  ]
  const [head, rows] = tableOf(images, names)
  const fitting = takeFitting(rows, 1)
  if (fitting.length > 0) {
    const table = [...head, ...fitting]
    if (images.length <= SHOWN) blocks.push(table)
    else blocks.push([`<details><summary>${images.length} images</summary>`, '', ...table, '', '</details>'])
  }
  if (isCut) blocks.push(['More files do not fit here.'])
  return `${blocks
    .filter(lines => lines.length > 0)
    .map(lines => lines.join('\n'))
    .join('\n\n')}\n\n`
}

/** The shortest ends of the paths of files that are different. */
function shortNames(results: readonly Result[]): Map<Result, string> {
  const ends = results.map(one => {
    const names = [titleOf(one.name)]
    if (!isWebAddress(one.name)) names.unshift(...one.name.split(/[\\/]/).filter(Boolean).slice(0, -1))
    return names.map((_, index) => names.slice(-index - 1).join('/'))
  })
  const counts = new Map<string, number>()
  for (const end of ends.flat()) counts.set(end, (counts.get(end) ?? 0) + 1)
  const shortest = (of: readonly string[]) => of.find(end => counts.get(end) === 1) ?? of.at(-1) ?? ''
  return new Map(results.map((one, index) => [one, shortest(ends[index] ?? [])]))
}

/** The head and the rows of a table of images, each with its name below it. */
function tableOf(
  images: readonly Result[],
  names: ReadonlyMap<Result, string>,
): [head: readonly string[], rows: readonly string[]] {
  const columns = Math.min(COLUMNS, images.length)
  const rows = Array.from({ length: Math.ceil(images.length / COLUMNS) }, (_, row) =>
    images.slice(row * columns, (row + 1) * columns),
  )
  return [
    [`|${'   |'.repeat(columns)}`, `|${'---|'.repeat(columns)}`],
    rows.map(row => `| ${row.map(one => cellOf(one, names.get(one) ?? '')).join(' | ')} |`),
  ]
}

function cellOf({ url = '', width, height }: Result, name: string): string {
  const facts = width === undefined ? '' : ` (${width} × ${height})`
  return `${showImage(url, THUMBNAIL)}<br>${toMarkdownCode(name)}${facts}`
}

/** An image that links to its full size. @param width pixels */
export function showImage(url: string, width: number): string {
  const address = addressIn(url, 'html')
  return `<a href="${address}"><img src="${address}" width="${width}"></a>`
}
