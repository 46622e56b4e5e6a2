import { copyText } from './copy.ts'
import { element, fill, words } from './words.ts'

const tally = element('tally')
const total = element<HTMLProgressElement>('total')
const copyAll = element<HTMLButtonElement>('copy-all')
const retryAll = element('retry-all')

/** The progress of one upload. */
interface Part {
  readonly row: HTMLElement
  readonly weight: number
  readonly sent: number
}

export interface Overview {
  /** Every row, including files that were rejected before they were sent. */
  readonly rows: readonly HTMLElement[]
  /** The uploads added since the list was last idle. */
  readonly batch: readonly Part[]
  /** Number of uploads that can be retried. */
  readonly failed: number
  readonly isOffline: boolean
}

/** Shows how many files are stored, and the progress of all. A single file has the progress in its own row. */
export function showOverview({ rows, batch, failed, isOffline }: Overview): void {
  const count = (state: string) => rows.filter(row => row.dataset['state'] === state).length
  const values = { stored: count('stored'), failed: count('failed'), all: rows.length }
  const texts = rows.length > 1 ? [fill(words.tally, values)] : []
  if (rows.length > 1 && values.failed > 0) texts.push(fill(words.tallyFailed, values))
  if (isOffline) texts.push(words.offline)
  tally.textContent = texts.join(' · ')
  const all = batch.reduce((sum, { weight }) => sum + weight, 0)
  total.value = batch.reduce((sum, upload) => sum + doneOf(upload) * upload.weight, 0) / (all || 1)
  total.hidden = batch.length < 2 || batch.every(upload => doneOf(upload) === 1)
  copyAll.disabled = values.stored === 0
  retryAll.hidden = failed < 2
  element('list-tools').hidden = rows.length === 0
}

/** Progress from 0 to 1. Only a finished upload counts as 1. */
function doneOf({ row, sent }: Part): number {
  const state = row.dataset['state'] ?? ''
  return ['waiting', 'sending'].includes(state) ? Math.min(sent, 0.99) : 1
}

interface Actions {
  /** The links, in the order in which the files came. */
  links(): string
  retry(): void
  clear(): void
}

export function setUpOverview({ links, retry, clear }: Actions): void {
  copyAll.addEventListener('click', () => void copyText(links(), copyAll))
  retryAll.addEventListener('click', retry)
  element('clear').addEventListener('click', clear)
}
