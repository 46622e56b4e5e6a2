import { bytes } from '../../log-lines.ts'
import { addressIn } from '../../page/links.ts'
import { toMarkdown, toMarkdownCode, toMarkdownText } from '../../safe-text.ts'
import { isFailure, type Result } from '../result.ts'
import { isImageLink, titleOf, traceViewerOf } from './format.ts'

/** Below the limit of 1 MiB for the summary of a step on GitHub. */
export const SUMMARY_BYTES = 1000 * 1024
/** Number of images in a row of a gallery, and their width in pixels. */
const [COLUMNS, THUMBNAIL] = [4, 200]
/** Galleries with more images than this are collapsible. */
const SHOWN = 12

/** The summary of a GitHub Actions run: totals, failures, other files as links, and images in a table. */
export function toSummary(results: readonly Result[], mostBytes = SUMMARY_BYTES): string {
  const failed = results.filter(isFailure)
  const stored = results.filter(one => one.url !== undefined)
  const size = stored.reduce((sum, one) => sum + (one.size ?? 0), 0)
  const unfinished = results.filter(one => one.finalizationId !== undefined).length
  const totals = [
    `${stored.length} of ${results.length} stored${size > 0 ? `, ${bytes(size)}` : ''}`,
    ...(failed.length > 0 ? [`${failed.length} failed`] : []),
    ...(unfinished > 0 ? [`${unfinished} stored, completion pending`] : []),
  ]
  const failures = failed.map(one => `- ❌ ${toMarkdownCode(one.name)}: ${toMarkdown(one.error ?? '')}`)
  const listed = takeFitting(failures, mostBytes / 2, '\n', left => `- ❌ and ${left} more`)
  const parts = [
    `**${failed.length > 0 ? '❌ ' : ''}${totals.join(', ')}**`,
    listed,
    toGallery(stored, mostBytes - Buffer.byteLength(listed)),
  ]
  return `${parts.filter(part => part !== '').join('\n\n')}\n\n`
}

/** Stored files: images in a table, each with its name above it, and others as links. */
export function toGallery(stored: readonly Result[], mostBytes: number): string {
  const isImage = (one: Result) => isImageLink(one.url ?? '', one)
  const images = stored.filter(isImage)
  const others = stored.filter(one => !isImage(one))
  const links = others.map(one => {
    const viewer = traceViewerOf(one)
    const open = viewer === undefined ? '' : ` · [open](${addressIn(viewer, 'markdown')})`
    return `- [${toMarkdownCode(one.name)}](${addressIn(one.url ?? '', 'markdown')})${open}`
  })
  const cells = images.map(one => {
    const size = one.width === undefined ? '' : ` (${one.width} × ${one.height})`
    return `${toMarkdownCode(one.name)}${size}<br>${showImage(one, '', THUMBNAIL)}`
  })
  const rows = Array.from({ length: Math.ceil(images.length / COLUMNS) }, (_, row) =>
    toRow(cells.slice(row * COLUMNS, (row + 1) * COLUMNS)),
  )
  const list = takeFitting(links, mostBytes / 2, '\n', left => `- and ${left} more files`)
  const room = mostBytes - Buffer.byteLength(list)
  const shown = takeFitting(rows, room, '\n', () => toRow(['More images do not fit here.']))
  const table = toTable([shown])
  const gallery = images.length > SHOWN ? toDetails(`${images.length} images`, table) : table
  return [list, ...(images.length > 0 ? [gallery] : [])].filter(part => part !== '').join('\n\n')
}

/** A table in HTML. Its cells have HTML, but no Markdown. */
export const toTable = (rows: readonly string[]) => `<table>\n${rows.join('\n')}\n</table>`

export const toRow = (cells: readonly string[]) =>
  `<tr>${cells.map(cell => `<td>${cell}</td>`).join('')}</tr>`

/** A part that is collapsed at first. @param summary safe Markdown */
export const toDetails = (summary: string, text: string) =>
  `<details><summary>${summary}</summary>\n\n${text}\n\n</details>`

/** Joins the first texts that fit into the limit. @param more the text at the end if others do not fit */
export function takeFitting(
  texts: readonly string[],
  mostBytes: number,
  separator: string,
  more: (left: number) => string,
): string {
  let room = mostBytes
  const end = texts.findIndex(text => {
    room -= Buffer.byteLength(text + separator)
    return room < 0
  })
  const fitting = end < 0 ? texts : [...texts.slice(0, end), more(texts.length - end)]
  return fitting.join(separator)
}

/** Limits of an image that is shown next to others, pixels: a phone's screen fits, and a long page leaves room for others. */
const [WIDTH, HEIGHT] = [390, 400]

/**
 * An image that links to its full size. The smaller copy is shown, if there is one.
 *
 * @param what it shows, such as "before"
 */
export function showImage(
  { name, url = '', small = url, width = 0, height = 0 }: Result,
  what: string,
  most = WIDTH,
): string {
  const natural = width > 0 && height > 0 ? Math.min(width, (HEIGHT * width) / height) : most
  const shown = Math.max(1, Math.round(Math.min(natural, most)))
  const alt = toMarkdownText(`${titleOf(name)} ${what}`.trim())
  return `<a href="${addressIn(url, 'html')}"><img src="${addressIn(small, 'html')}" width="${shown}" alt="${alt}"></a>`
}
