import { bytes } from '../../log-lines.ts'
import { addressIn } from '../../page/client/links.ts'
import { toMarkdown, toMarkdownCode } from '../../safe-text.ts'
import { isFailure, type Result } from '../result.ts'
import { isImageLink, titleOf } from './format.ts'

/** A step's summary on GitHub may have 1 MiB. */
const MOST_BYTES = 1000 * 1024
/** Pictures beside each other, and their width, pixels. */
const [COLUMNS, THUMBNAIL] = [4, 200]
/** More pictures than these are folded away. */
const SHOWN = 12

/** What GitHub Actions shows below a run: totals, what failed, pictures in a table, links to everything else. */
export function toSummary(results: readonly Result[], mostBytes = MOST_BYTES): string {
  const failed = results.filter(isFailure)
  const stored = results.filter(one => one.url !== undefined)
  const pictures = stored.filter(one => isImageLink(one.url ?? '', one))
  const others = stored.filter(one => !pictures.includes(one))
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
    tableOf(pictures),
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
  const isLong = pictures.length > SHOWN
  const table = isLong && pictures.length > 0 ? rest.pop() : undefined
  const folded = table && [
    `<details><summary>${pictures.length} images</summary>`,
    '',
    ...table,
    '',
    '</details>',
  ]
  return `${[totalsBlock, ...rest, ...(folded ? [folded] : []), ...cut].map(lines => lines.join('\n')).join('\n\n')}\n\n`
}

/** A row for every few pictures, each above its name. */
function tableOf(pictures: readonly Result[]): string[] {
  if (pictures.length === 0) return []
  const columns = Math.min(COLUMNS, pictures.length)
  const rows = Array.from({ length: Math.ceil(pictures.length / columns) }, (_, row) =>
    pictures.slice(row * columns, (row + 1) * columns),
  )
  return [
    `|${'   |'.repeat(columns)}`,
    `|${'---|'.repeat(columns)}`,
    ...rows.map(row => `| ${row.map(cellOf).join(' | ')} |`),
  ]
}

function cellOf({ url = '', name, width, height }: Result): string {
  const facts = width === undefined ? '' : ` (${width} × ${height})`
  return `${showPicture(url, THUMBNAIL)}<br>${toMarkdownCode(titleOf(name))}${facts}`
}

/** A picture in a cell of a table, which leads to itself. @param width pixels */
export function showPicture(url: string, width: number): string {
  const address = addressIn(url, 'html')
  return `<a href="${address}"><img src="${address}" width="${width}"></a>`
}
