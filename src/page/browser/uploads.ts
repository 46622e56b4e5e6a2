import { copyText, write } from './copy.ts'
import {
  announce,
  element,
  fill,
  keepChoice,
  makeButton,
  part,
  readKept,
  showSize,
  titleOf,
  urlOf,
  words,
} from './page.ts'
import { remember } from './recent.ts'
import { linkOf, makeRow, type Row, type State, show, showStored, showThumbnail } from './row.ts'
import { type Outcome, send } from './send.ts'
import { chosenDestination, chosenQuery, keyHeaders, me } from './visitor.ts'

/** Maximum number of uploads at a time. */
const CONCURRENCY = 3
/** Maximum number of automatic retries of an upload that did not reach the server. */
const MAX_RETRIES = 4
/** Interval of the health checks while the server can't be reached, milliseconds. */
const CHECK_MS = 2000

/** One file or URL. Its state is that of its row in the list. */
interface Upload {
  readonly source: File | URL
  readonly name: string
  /** Idempotency key: the same for every attempt, so that the server stores the file once. */
  readonly id: string
  /** The options chosen when the upload was added. */
  readonly query: URLSearchParams
  readonly row: Row
  /** How often it was retried because it did not reach the server. */
  retries: number
  /** Retries it after a failure. */
  again?: () => void
  /** Whether it failed because no valid key was sent. */
  isRejected?: boolean
  /** Whether it did not reach the server, and waits until that responds. */
  isUnsent?: boolean
  /** Whether the list was not idle since it was added. */
  isNew?: boolean
}

/** In the order in which they were added. */
let uploads: Upload[] = []
/** Whether all uploads wait for the server. */
let isOffline = false

const list = element('uploads')
const autoCopy = element<HTMLInputElement>('auto-copy')
const copyAll = element<HTMLButtonElement>('copy-all')

const inState = (...states: readonly State[]) =>
  uploads.filter(({ row }) => states.some(state => row.dataset['state'] === state))
const isBusy = () => inState('waiting', 'sending').length > 0 || uploads.some(({ isUnsent }) => isUnsent)
const linksOf = (some: readonly Upload[]) => some.map(({ row }) => linkOf(row)).join('\n')

export function setUpUploads(): void {
  autoCopy.checked = readKept('choices')?.autoCopy === true
  autoCopy.addEventListener('change', () => keepChoice({ autoCopy: autoCopy.checked }))
  addEventListener('beforeunload', event => {
    if (isBusy()) event.preventDefault()
  })
  copyAll.addEventListener('click', () => void copyText(linksOf(inState('stored')), copyAll))
  element('retry-all').addEventListener('click', () => {
    for (const { again } of inState('failed')) again?.()
  })
  element('clear').addEventListener('click', () => {
    const done = '[data-state=stored], [data-state=failed], [data-state=cancelled]'
    for (const row of list.querySelectorAll(done)) row.remove()
    uploads = uploads.filter(({ row }) => row.isConnected)
    update()
  })
}

/** Adds files or a URL at the top of the list, and queues them. @param query their options */
export function add(sources: readonly (File | URL)[], query = chosenQuery()): void {
  const limit = me?.fileSize ?? Infinity
  const rows = sources.map(source => {
    const isFile = source instanceof File
    if (isFile && source.size > limit) {
      const sizes = { size: showSize(limit), own: showSize(source.size) }
      return addRejected(source.name, titleOf('too_large'), fill(words.state.limitHelp, sizes))
    }
    const name = isFile ? source.name : source.pathname.split('/').pop() || source.host
    const image = isFile && source.type.startsWith('image/') ? URL.createObjectURL(source) : undefined
    const row = makeRow(name, isFile ? showSize(source.size) : source.host, image)
    // `crypto.randomUUID` exists with TLS only.
    const id = crypto.getRandomValues(new Uint32Array(4)).join('-')
    const upload = { source, name, id, query, row, retries: 0 }
    uploads.push(upload)
    queue(upload)
    return row
  })
  list.prepend(...rows)
  update()
  rows[0]?.scrollIntoView({ block: 'nearest' })
}

/** Adds a row for something that can't be sent, with the reason. */
export function addRejected(name: string, title: string, detail = ''): Row {
  const row = makeRow(name, '')
  list.prepend(row)
  show(row, 'failed', { title, detail })
  update()
  announce(`${name}: ${title}`)
  return row
}

/** Retries the uploads that were rejected because no valid key was sent. */
export function retryRejected(): void {
  for (const upload of uploads) if (upload.isRejected) queue(upload)
}

function queue(upload: Upload): void {
  Object.assign(upload, { again: undefined, isRejected: false, isUnsent: false, isNew: true })
  show(upload.row, 'waiting', { title: words.state.waiting })
  next()
}

/** Starts the uploads whose turn it is. */
function next(): void {
  update()
  if (isOffline || inState('sending').length >= CONCURRENCY) return
  const [upload] = inState('waiting')
  if (!upload) return
  void run(upload).finally(() => {
    next()
    void copyNew()
  })
  next()
}

async function run(upload: Upload): Promise<void> {
  const { source, name, row, query, id } = upload
  const cancel = new AbortController()
  const cancelButton = makeButton(words.state.cancel, name, () => cancel.abort())
  let body: FormData | string
  if (source instanceof File) {
    body = new FormData()
    body.append('file', source)
  } else body = JSON.stringify({ list: [source.href] })
  showProgress(row, 0, cancelButton)
  const headers = { ...keyHeaders(), 'Idempotency-Key': id }
  const onProgress = (sent: number) => showProgress(row, sent, cancelButton)
  finish(upload, await send({ query, body, headers, onProgress, signal: cancel.signal }))
}

/** @param sent progress from 0 to 1. At 1 the server finishes the upload, and it can't be cancelled any more. */
function showProgress(row: Row, sent: number, cancel?: HTMLElement): void {
  const progress = part<HTMLProgressElement>(row, 'progress')
  const { sending, storing } = words.state
  if (sent < 1) progress.value = sent
  else progress.removeAttribute('value')
  const title = sent < 1 ? fill(sending, { percent: Math.floor(sent * 100) }) : storing
  show(row, 'sending', { title }, ...(sent < 1 && cancel ? [cancel] : []))
}

/** Runs the pending post-upload steps of an upload again. */
async function complete(upload: Upload, finalizationId: string): Promise<void> {
  showProgress(upload.row, 1)
  const query = new URLSearchParams({ finalizationId })
  finish(upload, await send({ query, headers: keyHeaders() }), finalizationId)
  next()
}

/** Shows the outcome of an upload, and the button for what can be done next. */
function finish(upload: Upload, outcome: Outcome, finalizationId?: string): void {
  const { row, name } = upload
  const { cancelled, pending, pendingHelp, retry, offlineHelp } = words.state
  const ask = (label: string, press: () => void) => makeButton(label, name, press)
  const again = () => {
    if (finalizationId !== undefined) return void complete(upload, finalizationId)
    isOffline = false
    queue(upload)
  }
  if (outcome.kind === 'stored') {
    showLink(upload, outcome)
    announce(`${name}: ${words.state.stored}`)
  } else if (outcome.kind === 'cancelled') {
    show(row, 'cancelled', { title: cancelled }, ask(retry, again))
    announce(`${name}: ${cancelled}`)
  } else if (outcome.kind === 'pending') {
    const { reason, finalizationId: id } = outcome
    const button = ask(words.state.complete, () => void complete(upload, id))
    show(row, 'pending', { title: pending, reason, detail: pendingHelp }, button)
    announce(`${name}: ${pending}`)
  } else {
    const isUnsent =
      outcome.isOffline === true && finalizationId === undefined && upload.retries < MAX_RETRIES
    show(row, 'failed', { ...outcome, ...(isUnsent && { detail: offlineHelp }) }, ask(retry, again))
    Object.assign(upload, { again, isRejected: outcome.code === 'unauthorized', isUnsent })
    announce(`${name}: ${outcome.title}`)
    if (isUnsent) {
      upload.retries++
      void waitForServer()
    }
  }
}

function showLink(upload: Upload, { url, item }: Outcome & { kind: 'stored' }): void {
  const { row, name, source, query } = upload
  const { contentType = '', size, expiresAt } = item
  const isImage = contentType.startsWith('image/')
  const isHeic = /^image\/hei[cf]/.test(contentType)
  const link = { url, name, isImage, expiresAt }
  const asJpeg = new URLSearchParams(query)
  asJpeg.set('format', 'jpeg')
  const mayConvert = isHeic && chosenDestination()?.pictures.includes('format')
  showStored(
    row,
    link,
    ...(mayConvert ? [makeButton(words.link.asJpeg, name, () => add([source], asJpeg))] : []),
  )
  if (isHeic) part(row, '.detail').append(' ', words.link.heic)
  if (size !== undefined) {
    // Image options can make the stored bytes fewer than those sent.
    const sizes = [...(source instanceof File ? [showSize(source.size)] : []), showSize(size)]
    part(row, '.name small').textContent = [...new Set(sizes)].join(' → ')
  }
  remember(link)
  if (isImage && !row.querySelector('img')) showThumbnail(row, url)
}

/** Pauses all uploads until the server responds, and then retries those that did not reach it. */
async function waitForServer(): Promise<void> {
  if (isOffline) return
  isOffline = true
  do await new Promise(resolve => setTimeout(resolve, CHECK_MS))
  while (isOffline && !(await isServerUp()))
  isOffline = false
  for (const upload of uploads) if (upload.isUnsent) queue(upload)
  next()
}

async function isServerUp(): Promise<boolean> {
  try {
    return (await (await fetch(urlOf('heartbeat'), { cache: 'no-store' })).json()).success === true
  } catch {
    return false
  }
}

/** Copies the links of the uploads that were added together, once the last of them is done. */
async function copyNew(): Promise<void> {
  if (isBusy()) return
  const done = inState('stored').filter(({ isNew }) => isNew)
  for (const upload of uploads) upload.isNew = false
  if (!autoCopy.checked || done.length === 0) return
  const isCopied = await write(linksOf(done))
  announce(isCopied ? fill(words.link.autoCopied, { count: done.length }) : words.link.copyFailed)
}

/** Shows how many files are stored, and the buttons for all of them. */
function update(): void {
  const count = (state: State) => list.querySelectorAll(`[data-state=${state}]`).length
  const all = list.children.length
  const values = { stored: count('stored'), failed: count('failed'), all }
  const { tally, tallyFailed, offline } = words.state
  element('tally').textContent = [
    ...(all > 1 ? [fill(tally, values)] : []),
    ...(all > 1 && values.failed > 0 ? [fill(tallyFailed, values)] : []),
    ...(isOffline ? [offline] : []),
  ].join(' · ')
  list.hidden = all === 0
  element('tools').hidden = all === 0 && document.querySelector('#recent li') === null
  element('list-tools').hidden = all === 0
  copyAll.disabled = values.stored === 0
  element('retry-all').hidden = uploads.filter(({ again }) => again).length < 2
}
