import { chosenQuery } from './choices.ts'
import { copyText } from './copy.ts'
import { setUpFormats, showLink } from './formats.ts'
import { keyHeaders } from './key.ts'
import { keep } from './lately.ts'
import { createMeter } from './meter.ts'
import { makeRow, part, setActions, show, showProgress, showSize, showThumbnail } from './row.ts'
import { type Ending, send } from './send.ts'
import { announce, element, fill, makeButton, words } from './words.ts'

/** How many are sent at a time. */
const AT_ONCE = 3

/** One file or address, with its row in the list. */
interface Upload {
  readonly source: File | URL
  /** Of the order in which they came. */
  readonly number: number
  readonly name: string
  /** The same at every attempt, so that the server stores it once. */
  readonly id: string
  /** What was chosen when it was added. */
  readonly query: string
  readonly row: HTMLLIElement
}

const waiting: Upload[] = []
let running = 0
let made = 0

const section = element('uploads')
const list = section.querySelector('ol') as HTMLOListElement
const stored = new Set<Upload>()
/** What was refused for want of a key. */
const refused = new Set<Upload>()

/** Bytes of the largest file that the server takes. */
const limit = Number(element('drop').dataset['limit'])

/** Puts files or an address on top of the list, where rows that grow don't move them, and sends each in its turn. */
export function add(...sources: readonly (File | URL)[]): void {
  const rows = sources.map(addOne)
  list.prepend(...rows)
  rows[0]?.scrollIntoView({ block: 'nearest' })
}

function addOne(source: File | URL): HTMLLIElement {
  if (source instanceof File && source.size > limit) {
    const sizes = { size: showSize(limit), own: showSize(source.size) }
    return addRefused(source.name, words.failures['too_large'] ?? '', fill(words.limitHelp, sizes))
  }
  const upload = makeUpload(source)
  section.hidden = false
  list.prepend(upload.row)
  queue(upload)
  return upload.row
}

/** Something that can't be sent: the list says why. */
export function addRefused(name: string, title: string, help = ''): HTMLLIElement {
  const row = makeRow(name, '')
  section.hidden = false
  list.prepend(row)
  show(row, 'failed', title, '', help)
  count()
  announce(fill(words.failedName, { name, reason: title }))
  return row
}

function makeUpload(source: File | URL): Upload {
  const name = source instanceof File ? source.name : nameOf(source)
  const size = source instanceof File ? showSize(source.size) : source.host
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return {
    source,
    number: ++made,
    name,
    id: Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join(''),
    query: chosenQuery(),
    row: makeRow(name, size, source instanceof File && source.type.startsWith('image/') ? source : undefined),
  }
}

function nameOf(url: URL): string {
  return url.pathname.split('/').pop() || url.host
}

/** Sends again what was refused for want of a key. */
export function sendRefused(): void {
  for (const upload of refused) if (upload.row.isConnected) queue(upload)
}

function queue(upload: Upload): void {
  refused.delete(upload)
  show(upload.row, 'waiting', words.waiting)
  count()
  waiting.push(upload)
  next()
}

function next(): void {
  if (running >= AT_ONCE) return
  const upload = waiting.shift()
  if (!upload) return
  running++
  void run(upload).finally(() => {
    running--
    next()
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
    showProgress(row, sent / all, measure(sent, all))
    // What has arrived goes on without its sender, so that a repetition finds it done.
    if (sent === all) setActions(row)
  }
  settle(upload, await send({ query, body, headers, onProgress, signal: cancel.signal }))
}

async function finish(upload: Upload, finalizationId: string): Promise<void> {
  setActions(upload.row)
  showProgress(upload.row, 1)
  const query = `?${new URLSearchParams({ finalizationId })}`
  settle(upload, await send({ query, headers: keyHeaders() }), finalizationId)
}

/** Shows what became of it, and what can be done now. */
function settle(upload: Upload, ending: Ending, finalizationId?: string): void {
  const { row, name } = upload
  if (ending.kind === 'stored') {
    showStored(upload, ending.url, ending.type)
    count()
    announce(fill(words.storedName, { name }))
    return
  }
  if (ending.kind === 'cancelled') {
    show(row, 'cancelled', words.cancelled)
    setActions(
      row,
      makeButton(words.again, name, () => queue(upload)),
    )
    announce(`${name}: ${words.cancelled}`)
    return
  }
  if (ending.kind === 'pending') {
    show(row, 'pending', words.pending, ending.reason, words.pendingHelp)
    setActions(
      row,
      makeButton(words.finish, name, () => finish(upload, ending.finalizationId)),
    )
    announce(`${name}: ${words.pending}`)
    return
  }
  show(row, 'failed', ending.title, ending.reason, ending.detail)
  const again = () => (finalizationId === undefined ? queue(upload) : void finish(upload, finalizationId))
  setActions(row, makeButton(words.again, name, again))
  if (ending.code === 'unauthorized') refused.add(upload)
  announce(fill(words.failedName, { name, reason: ending.title }))
}

function showStored(upload: Upload, url: string, type: string): void {
  const { row, name } = upload
  const isImage = type.startsWith('image/')
  stored.add(upload)
  show(row, 'stored', words.stored)
  const link = { url, name, isImage }
  showLink(row, link)
  keep(link)
  if (isImage && !row.querySelector('img')) showThumbnail(row, url)
}

/** Says how many of the list are stored; one file needs no count. */
function count(): void {
  const values = { stored: stored.size, all: list.children.length }
  element('tally').textContent = values.all > 1 ? fill(words.tally, values) : ''
  element<HTMLButtonElement>('copy-all').disabled = stored.size === 0
}

export function setUpList(): void {
  setUpFormats()
  addEventListener('beforeunload', event => {
    if (running > 0) event.preventDefault()
  })
  const all = element<HTMLButtonElement>('copy-all')
  all.addEventListener('click', () => {
    const inOrder = [...stored].sort((a, b) => a.number - b.number)
    const links = inOrder.map(({ row }) => part<HTMLInputElement>(row, '.link').value)
    void copyText(links.join('\n'), all)
  })
  element('clear').addEventListener('click', () => {
    for (const row of list.querySelectorAll(
      '[data-state=stored], [data-state=failed], [data-state=cancelled]',
    ))
      row.remove()
    stored.clear()
    count()
    section.hidden = list.children.length === 0
  })
}
