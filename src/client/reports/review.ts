import { isFailure, type Result } from '../result.ts'

/** Result of a comparison with earlier images for one image. `failed`: it could not be uploaded. */
export const STATES = ['changed', 'new', 'gone', 'renamed', 'failed', 'same'] as const
export type State = (typeof STATES)[number]

export const STATE_LABELS = {
  changed: 'Changed',
  new: 'New',
  gone: 'Gone',
  renamed: 'Renamed',
  failed: 'Failed',
  same: 'The same',
} as const satisfies Record<State, string>

/** One image of a comparison. */
export interface ReviewRow {
  /** Path below the folder of the images. A renamed image has its new path. */
  readonly name: string
  readonly state: State
  /** The earlier image, of `changed` and `gone`. Without `url` if it was not uploaded. */
  readonly before?: Result
  /** The present image, of all but `gone`. */
  readonly after?: Result
  /** An image that shows the difference, of some that are `changed`. */
  readonly difference?: Result
  /** Share of the pixels that have changed, 0 to 1. Undefined if only the bytes were compared. */
  readonly share?: number
  /** The earlier path, of `renamed`. */
  readonly from?: string
}

/** A CI run, and what it ran for. */
export interface Run {
  /** The commit, hexadecimal. */
  readonly commit?: string
  /** URL of the page of the run. */
  readonly url?: string
  /** A later run has a higher one. Undefined where the CI provider counts the runs of each pipeline on its own. */
  readonly id?: number
}

/**
 * The outcome of a comparison with earlier images. It is plain JSON: the comment and the report show it, and it is what
 * `--baseline` stores.
 */
export interface Review {
  /** The most changed image first, then in the order of `STATES`; those of one state in the order of the upload. */
  readonly rows: readonly ReviewRow[]
  /** The earlier images: what `--baseline` or `--compare` named, and the run that stored them. */
  readonly baseline?: Run & { readonly name: string }
  /** The run that uploaded the present images. */
  readonly run?: Run
  /** How many of the shards of the run it has. Missing if the run has none. */
  readonly shards?: { readonly found: number; readonly of: number }
}

/** Sorts rows: by state, and changed ones by how much. Those whose pixels could not be compared count as the most changed. */
export function sortRows(rows: readonly ReviewRow[]): ReviewRow[] {
  const orderOf = ({ state, share = 1 }: ReviewRow) =>
    STATES.indexOf(state) - (state === 'changed' ? share / 2 : 0)
  return [...rows].sort((a, b) => orderOf(a) - orderOf(b))
}

/** Images that are not compared: see `isComparison`. */
export function toReview(results: readonly Result[], run: Run): Review {
  const rows = results.map(
    (after): ReviewRow => ({ name: after.name, state: isFailure(after) ? 'failed' : 'new', after }),
  )
  return { rows: sortRows(rows), run }
}

/** Number of images in each state. */
export function countsOf({ rows }: Review): Readonly<Record<State, number>> {
  const counts = { changed: 0, new: 0, gone: 0, renamed: 0, failed: 0, same: 0 }
  for (const { state } of rows) counts[state]++
  return counts
}

/** Such as "3 changed · 1 new · 509 the same". */
export function totalsOf(review: Review): string {
  // Without earlier images, nothing is new.
  const counts = { ...countsOf(review), ...(review.baseline === undefined && { new: 0 }) }
  const totals = STATES.flatMap(state =>
    counts[state] > 0 ? [`${counts[state]} ${STATE_LABELS[state].toLowerCase()}`] : [],
  )
  return [totals.join(' · ') || 'nothing to compare', ...missingShardsOf(review)].join(' · ')
}

/** Such as "2 of 4 shards", until all shards of the run are there. */
export function missingShardsOf({ shards }: Review): string[] {
  return shards && shards.found < shards.of ? [`${shards.found} of ${shards.of} shards`] : []
}

/** Whether images were compared with others. Otherwise all of them are shown, and none of them as new. */
export function isComparison({ rows, baseline }: Review): boolean {
  return baseline !== undefined || rows.length === 0 || rows.some(({ state }) => state === 'changed')
}

/** Such as "1 of 5 files failed". Undefined if none has failed. */
export function failuresOf({ rows }: Review): string | undefined {
  const failed = rows.filter(({ state }) => state === 'failed').length
  const files = rows.filter(({ after }) => after !== undefined).length
  return failed > 0 ? `${failed} of ${files} files failed` : undefined
}

/** Whether there is nothing to review. */
export function isAllTheSame({ rows }: Review): boolean {
  return rows.every(({ state }) => state === 'same')
}

/** The number of changed images, and of new ones, that a comment shows with differences and smaller copies. */
export const MOST_SHOWN = 60

/** What is known of a change, such as "0.4 % of the pixels changed, 400 × 300 → 400 × 320". */
export function describeRow({ before, after, share }: ReviewRow): string {
  const sizes = [before, after].map(one => (one?.width === undefined ? '' : `${one.width} × ${one.height}`))
  const isResized = sizes[0] !== sizes[1] && !sizes.includes('')
  return [
    ...(share === undefined ? [] : [`${percent(share)} of the pixels changed`]),
    ...(isResized ? [sizes.join(' → ')] : []),
  ].join(', ')
}

/** At least 0.01 %, because 0 % would mean that nothing has changed. */
const percent = (share: number) =>
  `${Math.max(share * 100, 0.01).toLocaleString('en', { maximumFractionDigits: 2 })} %`

/** The rows in a state, in their order. */
export function rowsIn({ rows }: Review, ...states: readonly State[]): ReviewRow[] {
  return rows.filter(({ state }) => states.includes(state))
}
