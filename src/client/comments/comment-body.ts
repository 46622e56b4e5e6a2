import { addressIn } from '../../page/links.ts'
import { toMarkdown, toMarkdownCode } from '../../safe-text.ts'
import {
  describeRow,
  isAllTheSame,
  isComparison,
  missingShardsOf,
  type Review,
  type ReviewRow,
  type Run,
  rowsIn,
  totalsOf,
} from '../reports/review.ts'
import {
  showImage,
  takeFitting,
  toDetails,
  toGallery,
  toRow,
  toSummary,
  toTable,
} from '../reports/summary.ts'
import type { Result } from '../result.ts'

/** Below the 65,536 characters that GitHub accepts, including the marker of the comment. GitLab and Gitea accept more. */
const MOST_BYTES = 63_000
/** Images that are shown at once. If there are more, the others are collapsed. */
const OPEN = 6

/** Texts around the images of a comment. */
export interface Frame {
  readonly title: string
  /** The run that uploaded the images. */
  readonly run?: Run | undefined
  readonly report?: ReportLink | undefined
}

/** The page with all images. */
export interface ReportLink {
  /** Name of its local file. */
  readonly file: string
  /** Undefined if it was not stored. */
  readonly url?: string | undefined
}

/** The Markdown of a comment: changed images before and after, other images as in a summary. */
export function toBody(frame: Frame, review: Review, mostBytes = MOST_BYTES): string {
  const title = toMarkdown(frame.title)
  const isCompared = isComparison(review)
  if (isCompared && isAllTheSame(review)) return `**${title}**: ${totalsOf(review)}\n`
  const results = review.rows.flatMap(({ after }) => after ?? [])
  const parts = [
    `### ${title}`,
    isCompared ? `**${totalsOf(review)}**` : missingShardsOf(review).join(),
    showFacts(frame.run, review),
    ...(isCompared ? showReview(review, mostBytes) : [toSummary(results, mostBytes).trimEnd()]),
    showReport(frame),
  ]
  return `${parts.filter(part => part !== '').join('\n\n')}\n`
}

/** The commits and the run. Git hosts link and shorten the whole hash of a commit. */
function showFacts(run: Run | undefined, review: Review): string {
  const { commit = '', url } = run ?? {}
  const baseline = review.baseline?.commit ?? ''
  return [
    ...(COMMIT.test(commit) ? [`Commit ${commit}`] : []),
    ...(url === undefined ? [] : [`[run](${addressIn(url, 'markdown')})`]),
    ...(COMMIT.test(baseline) ? [`compared with ${baseline}`] : []),
  ].join(' · ')
}

const COMMIT = /^[\da-f]{40}(?:[\da-f]{24})?$/

function showReport({ report, run }: Frame): string {
  if (report === undefined) return ''
  if (report.url !== undefined) return `[Report with all images](${addressIn(report.url, 'markdown')})`
  const of = run?.url === undefined ? 'the job' : `[the run](${addressIn(run.url, 'markdown')})`
  return `Report with all images: ${toMarkdownCode(report.file)} in the artifacts of ${of}.`
}

/** The parts of a comparison. The changed images get the bytes that the others leave. */
function showReview(review: Review, mostBytes: number): string[] {
  const changed = rowsIn(review, 'changed')
  const failed = listRows(rowsIn(review, 'failed'), mostBytes / 16)
  const isCompared = review.baseline !== undefined
  const news = rowsIn(review, 'new').flatMap(({ name, after }) => (after ? [{ ...after, name }] : []))
  const added = toGallery(news, mostBytes / 8)
  const moved = listRows(rowsIn(review, 'renamed', 'gone'), mostBytes / 16)
  const room = mostBytes - Buffer.byteLength(failed + added + moved)
  const shown = showChanged(changed, room)
  return [failed, ...shown, added === '' || !isCompared ? added : `New:\n\n${added}`, moved]
}

/** The changed images, the most changed first. Those after the first ones are collapsed. */
function showChanged(rows: readonly ReviewRow[], mostBytes: number): string[] {
  const show = (some: readonly ReviewRow[], room: number) =>
    takeFitting(some.map(showRow), room, '\n\n', left => `${left} more do not fit here.`)
  const [first, others] = [show(rows.slice(0, OPEN), mostBytes / 2), rows.slice(OPEN)]
  if (others.length === 0) return [first]
  const summary = `${others.length} more changed`
  return [
    first,
    toDetails(summary, show(others, mostBytes - Buffer.byteLength(first + toDetails(summary, '')))),
  ]
}

/** The name and the size of the difference, and the images below it. */
function showRow(row: ReviewRow): string {
  const cells = [
    ['Before', showCell(row.before, 'before')],
    ['After', showCell(row.after, 'after')],
    ...(row.difference ? ([['Difference', showCell(row.difference, 'difference')]] as const) : []),
  ] as const
  // Columns of the same width, so that the images have the same scale.
  const heads = cells.map(([head]) => `<th width="${Math.floor(100 / cells.length)}%">${head}</th>`)
  const table = toTable([`<tr>${heads.join('')}</tr>`, toRow(cells.map(([, cell]) => cell))])
  const facts = describeRow(row)
  return `${toMarkdownCode(row.name)}${facts && `: ${facts}`}\n\n${table}`
}

function showCell(image: Result | undefined, what: string): string {
  if (image?.url !== undefined) return showImage(image, what)
  return image?.error === undefined ? 'not uploaded' : `❌ ${toMarkdown(image.error)}`
}

/** A line for each image that is not shown. */
function listRows(rows: readonly ReviewRow[], mostBytes: number): string {
  const lines = rows.map(({ name, state, from, before, after }) => {
    const code = toMarkdownCode(name)
    if (state === 'failed') return `- ❌ ${code}: ${toMarkdown(after?.error ?? '')}`
    const url = before?.url ?? after?.url
    const linked = url === undefined ? code : `[${code}](${addressIn(url, 'markdown')})`
    return `- ${state}: ${from === undefined ? '' : `${toMarkdownCode(from)} to `}${linked}`
  })
  return takeFitting(lines, mostBytes, '\n', left => `- and ${left} more`)
}
