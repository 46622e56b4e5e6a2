import type { Result } from '../result.ts'

/** What a comparison with earlier images says of one image. `failed`: it could not be uploaded. */
export const STATES = ['changed', 'new', 'gone', 'renamed', 'failed', 'same'] as const
export type State = (typeof STATES)[number]

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
}

/** Sorts rows: by state, and changed ones by how much. Those whose pixels could not be compared count as the most changed. */
export function sortRows(rows: readonly ReviewRow[]): ReviewRow[] {
  const orderOf = ({ state, share = 1 }: ReviewRow) =>
    STATES.indexOf(state) - (state === 'changed' ? share / 2 : 0)
  return [...rows].sort((a, b) => orderOf(a) - orderOf(b))
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
  const totals = STATES.flatMap(state => (counts[state] > 0 ? [`${counts[state]} ${WORDS[state]}`] : []))
  return totals.join(' · ') || 'nothing to compare'
}

const WORDS = Object.assign(Object.fromEntries(STATES.map(state => [state, state])), { same: 'the same' })

/** Whether there is nothing to review. */
export function isAllTheSame({ rows }: Review): boolean {
  return rows.every(({ state }) => state === 'same')
}

/** The rows in a state, in their order. */
export function rowsIn({ rows }: Review, ...states: readonly State[]): ReviewRow[] {
  return rows.filter(({ state }) => states.includes(state))
}
