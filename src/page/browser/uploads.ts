import { allowedOptions, chosenQuery } from './choices.ts'
import { write } from './copy.ts'
import { linkOf, setUpFormats, showLink } from './formats.ts'
import { keyHeaders } from './key.ts'
import { createMeter } from './meter.ts'
import { setUpOverview, showOverview } from './overview.ts'
import { remember } from './recent.ts'
import { onReconnect } from './reconnect.ts'
import { makeRow, part, type State, setActions, show, showProgress, showSize, showThumbnail } from './row.ts'
import { saveChoice, savedChoices } from './saved.ts'
import { type Outcome, send } from './send.ts'
import { me } from './visitor.ts'
import { announce, element, fill, makeButton, titleOf, words } from './words.ts'

/** Maximum number of uploads at a time. */
const CONCURRENCY = 3
/** Maximum number of automatic retries of an upload that did not reach the server. */
const MAX_RETRIES = 4

/** One file or URL, with its row in the list. */
export interface Upload {
  readonly source: File | URL
  readonly name: string
  /** Idempotency key: the same for every attempt, so that the server stores the file once. */
  readonly id: string
  /** The options chosen when the upload was added. */
  readonly query: string
  readonly row: HTMLLIElement
  /** Its share of the total progress, in bytes. A URL counts as 1, since its size is unknown. */
  readonly weight: number
  /** Progress from 0 to 1; at 1 the server has the whole file. */
  sent: number
  /** How often it was retried because it did not reach the server. */
  reconnects: number
  /** Retries it after a failure. */
  again?: (() => void) | undefined
  /** Whether it failed because no valid key was sent. */
  isRejected?: boolean
  /** Whether it did not reach the server, and waits until that responds. */
  isUnsent?: boolean
}

/** In the order in which they were added. The state of each is that of its row. */
let uploads: Upload[] = []

const section = element('uploads')
// The document is made by uploader.ts, which always contains this element, so the cast is safe.
const list = section.querySelector('ol') as HTMLOListElement
const autoCopy = element<HTMLInputElement>('auto-copy')
let isOffline = false
/** The uploads added since the list was last idle. */
let batch: Upload[] = []

const isIn = ({ row }: Upload, ...states: readonly State[]) =>
  states.some(one => row.dataset['state'] === one)
const inState = (...states: readonly State[]) => uploads.filter(upload => isIn(upload, ...states))
const isBusy = () => inState('waiting', 'sending').length > 0 || uploads.some(({ isUnsent }) => isUnsent)

/** Adds files or a URL at the top of the list, and queues them. */
export function add(...sources: readonly (File | URL)[]): void {
  const rows = sources.map(source => addOne(source))
  list.prepend(...rows)
  rows[0]?.scrollIntoView({ block: 'nearest' })
}

/** @param query the options of the upload; by default those that are chosen now */
function addOne(source: File | URL, query = chosenQuery()): HTMLLIElement {
  const limit = me?.fileSize ?? Infinity
  if (source instanceof File && source.size > limit) {
    const sizes = { size: showSize(limit), own: showSize(source.size) }
    return addRejected(source.name, titleOf('too_large') ?? '', fill(words.limitHelp, sizes))
  }
  const upload = makeUpload(source, query)
  uploads.push(upload)
  reveal()
  list.prepend(upload.row)
  queue(upload)
  return upload.row
}

/** Adds a row for something that can't be sent, with the reason. */
export function addRejected(name: string, title: string, help = ''): HTMLLIElement {
  const row = makeRow(name, '')
  reveal()
  list.prepend(row)
  show(row, 'failed', title, '', help)
  count()
  announce(fill(words.failedName, { name, reason: title }))
  return row
}

function reveal(): void {
  section.hidden = false
  element('tools').hidden = false
}

function makeUpload(source: File | URL, query: URLSearchParams): Upload {
  const name = source instanceof File ? source.name : nameOf(source)
  const size = source instanceof File ? showSize(source.size) : source.host
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return {
    source,
    name,
    id: Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join(''),
    query: query.size > 0 ? `?${query}` : '',
    row: makeRow(name, size, source instanceof File && source.type.startsWith('image/') ? source : undefined),
    weight: source instanceof File ? source.size + 1 : 1,
    sent: 0,
    reconnects: 0,
  }
}

function nameOf(url: URL): string {
  return url.pathname.split('/').pop() || url.host
}

/** Retries the uploads that were rejected because no valid key was sent. */
export function retryRejected(): void {
  for (const upload of uploads) if (upload.isRejected) queue(upload)
}

function queue(upload: Upload): void {
  if (inState('waiting', 'sending').length === 0) batch = []
  if (!batch.includes(upload)) batch.push(upload)
  Object.assign(upload, { sent: 0, again: undefined, isRejected: false, isUnsent: false })
  show(upload.row, 'waiting', words.waiting)
  setActions(upload.row)
  next()
  count()
}

/** Retries one upload on the visitor's request, even while the page waits for the server. */
function retry(upload: Upload): void {
  isOffline = false
  queue(upload)
}

/** Pauses all uploads until the server responds, and then retries those that did not reach it. */
function waitForServer(failures: number): void {
  if (isOffline) return
  isOffline = true
  onReconnect(failures, () => {
    isOffline = false
    for (const upload of uploads) if (upload.isUnsent) queue(upload)
    next()
    count()
  })
}

function next(): void {
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
  setActions(
    row,
    makeButton(words.cancel, name, () => cancel.abort()),
  )
  let body: FormData | string
  if (source instanceof File) {
    body = new FormData()
    body.append('file', source)
  } else body = JSON.stringify({ list: [source.href] })
  showProgress(row, 0)
  const headers = { ...keyHeaders(), 'Idempotency-Key': id }
  const measure = createMeter()
  const onProgress = (sent: number, all: number) => {
    upload.sent = sent / all
    showProgress(row, upload.sent, measure(sent, all))
    count()
    // The server finishes an upload that has arrived completely, so cancelling would no longer stop it.
    if (sent === all) setActions(row)
  }
  finish(upload, await send({ query, body, headers, onProgress, signal: cancel.signal }))
}

/** Runs the pending post-upload steps of an upload again. */
async function complete(upload: Upload, finalizationId: string): Promise<void> {
  upload.again = undefined
  setActions(upload.row)
  showProgress(upload.row, 1)
  const query = `?${new URLSearchParams({ finalizationId })}`
  finish(upload, await send({ query, headers: keyHeaders() }), finalizationId)
  next()
}

/** Shows the outcome of an upload, and the buttons for what can be done next. */
function finish(upload: Upload, outcome: Outcome, finalizationId?: string): void {
  const { row, name } = upload
  if (outcome.kind === 'stored') {
    showStored(upload, outcome)
    count()
    announce(fill(words.storedName, { name }))
    return
  }
  if (outcome.kind === 'cancelled') {
    show(row, 'cancelled', words.cancelled)
    setActions(
      row,
      makeButton(words.retry, name, () => retry(upload)),
    )
    count()
    announce(`${name}: ${words.cancelled}`)
    return
  }
  if (outcome.kind === 'pending') {
    show(row, 'pending', words.pending, outcome.reason, words.pendingHelp)
    setActions(
      row,
      makeButton(words.complete, name, () => complete(upload, outcome.finalizationId)),
    )
    count()
    announce(`${name}: ${words.pending}`)
    return
  }
  const isRetried = outcome.isOffline && finalizationId === undefined && upload.reconnects < MAX_RETRIES
  show(row, 'failed', outcome.title, outcome.reason, isRetried ? words.offlineHelp : outcome.detail)
  const again = () => (finalizationId === undefined ? retry(upload) : void complete(upload, finalizationId))
  setActions(row, makeButton(words.retry, name, again))
  Object.assign(upload, { again, isRejected: outcome.code === 'unauthorized', isUnsent: isRetried })
  if (isRetried) waitForServer(upload.reconnects++)
  count()
  announce(fill(words.failedName, { name, reason: outcome.title }))
}

function showStored(upload: Upload, { url, type, size, expiresAt }: Outcome & { kind: 'stored' }): void {
  const { row, name, source } = upload
  const isImage = type.startsWith('image/')
  show(row, 'stored', words.stored)
  const link = { url, name, isImage, expiresAt }
  const isHeic = /^image\/hei[cf]/.test(type)
  showLink(row, link, ...(isHeic ? offerJpeg(upload) : []))
  if (isHeic) part(row, '.detail').append(' ', words.heic)
  if (size !== undefined) {
    const given = source instanceof File ? showSize(source.size) : ''
    const about = [given, showSize(size)].filter((text, at, all) => text && text !== all[at + 1])
    part(row, '.name small').textContent = about.join(' → ')
  }
  remember(link)
  if (isImage && !row.querySelector('img')) showThumbnail(row, url)
}

/** A button that uploads a HEIC as JPEG, if the destination converts images on request. */
function offerJpeg({ source, name, query }: Upload): HTMLElement[] {
  if (!allowedOptions().includes('format')) return []
  const options = new URLSearchParams(query)
  options.set('format', 'jpeg')
  const press = () => list.prepend(addOne(source, options))
  return [makeButton(words.asJpeg, name, press)]
}

/** Copies the links of the uploads that were added together, once the last of them is done. */
async function copyNew(): Promise<void> {
  if (!autoCopy.checked || isBusy()) return
  const links = batch.filter(upload => isIn(upload, 'stored')).map(({ row }) => linkOf(row))
  if (links.length === 0) return
  const isCopied = await write(links.join('\n'))
  announce(isCopied ? fill(words.autoCopied, { count: links.length }) : words.copyFailed)
}

function count(): void {
  // The list only has rows of `makeRow`.
  const rows = [...list.children] as HTMLElement[]
  showOverview({ rows, batch, failed: uploads.filter(({ again }) => again).length, isOffline })
}

export function setUpList(): void {
  autoCopy.checked = savedChoices().autoCopy === true
  autoCopy.addEventListener('change', () => saveChoice({ autoCopy: autoCopy.checked }))
  setUpFormats()
  addEventListener('beforeunload', event => {
    if (isBusy()) event.preventDefault()
  })
  setUpOverview({
    links() {
      return inState('stored')
        .map(({ row }) => linkOf(row))
        .join('\n')
    },
    retry() {
      for (const { again } of uploads) again?.()
    },
    clear() {
      const done = '[data-state=stored], [data-state=failed], [data-state=cancelled]'
      for (const row of list.querySelectorAll(done)) row.remove()
      uploads = uploads.filter(({ row }) => row.isConnected)
      count()
      section.hidden = list.children.length === 0
      element('tools').hidden = document.querySelector('.link[aria-label]') === null && section.hidden
    },
  })
}
