import type { Link } from '../links.ts'
import { showLink, showTime } from './formats.ts'
import { keyHeaders } from './key.ts'
import { makeRow, show, showThumbnail } from './row.ts'
import { ROOT_PATH, urlOf } from './send.ts'
import { me } from './visitor.ts'
import { announce, element, fill, titleOf, words } from './words.ts'

interface StoredLink extends Link {
  /** Milliseconds since the epoch. */
  readonly time: number
}

/** Storage name. It includes the server's URL path, since several servers may share one origin. */
const STORAGE = `upload-server-links ${ROOT_PATH}`
/** Maximum number of links in the browser's storage, and of links shown at a time; a search finds the rest. */
const MAX_STORED = 500
const MAX_SHOWN = 20

const details = element<HTMLDetailsElement>('recent')
// The document is made by uploader.ts, which always contains these elements, so the casts are safe.
const title = details.querySelector('summary') as HTMLElement
const list = details.querySelector('ol') as HTMLOListElement
const field = element<HTMLInputElement>('recent-text')
const problem = element('recent-problem')
const none = element('recent-none')
const ownTitle = title.textContent

let asked = new AbortController()

/** Saves a link in the storage of this browser only. */
export function remember({ url, name, isImage, expiresAt }: Link): void {
  const others = read().filter(kept => kept.url !== url)
  write([{ url, name, isImage, expiresAt, time: Date.now() }, ...others].slice(0, MAX_STORED))
  refreshRecent()
}

export function setUpRecent(): void {
  let typing: number
  details.addEventListener('toggle', refreshRecent)
  field.addEventListener('input', () => {
    clearTimeout(typing)
    typing = setTimeout(refreshRecent, 200) // so that the server does not get a request per keystroke
  })
  element('clear-recent').addEventListener('click', () => {
    write([])
    details.open = false
    refreshRecent()
  })
  refreshRecent()
}

/** Shows the server's upload history if the visitor may read it, otherwise this browser's own list. */
export function refreshRecent(): void {
  asked.abort()
  asked = new AbortController()
  const isServers = me?.visitor.admittedBy !== undefined && me.visitor.hasHistory
  if (isServers && details.open) void showServers(asked.signal)
  else showList(search(read()), isServers)
}

async function showServers(signal: AbortSignal): Promise<void> {
  const found = await fetchHistory(signal)
  if (signal.aborted) return
  if (typeof found !== 'string') return showList(found, true)
  const why = fill(words.historyFailed, { reason: found })
  showList(search(read()), false, why)
  announce(why)
}

/** Shows a list, or its title alone while it is closed, so that no thumbnail is loaded unseen. */
function showList(found: readonly StoredLink[], isServers: boolean, why = ''): void {
  const kept = read().length
  details.hidden = !kept && !isServers && !why
  title.textContent = isServers ? words.historyTitle : ownTitle
  element('clear-recent').hidden = !kept
  problem.textContent = why
  problem.hidden = !why
  none.hidden = found.length > 0 || !details.open
  list.replaceChildren(...(details.open ? found.slice(0, MAX_SHOWN).map(renderStored) : []))
}

function search(all: readonly StoredLink[]): readonly StoredLink[] {
  const wanted = field.value.trim().toLowerCase()
  return all.filter(({ name, url }) => `${name}\n${url}`.toLowerCase().includes(wanted))
}

/** @returns the server's entries, or the reason why they could not be read */
async function fetchHistory(signal: AbortSignal): Promise<readonly StoredLink[] | string> {
  const query = new URLSearchParams({ text: field.value, limit: String(MAX_SHOWN) })
  try {
    const response = await fetch(urlOf(`history?${query}`), { headers: keyHeaders(), signal })
    const { success, result, code } = await response.json()
    if (!success) return titleOf(code) ?? words.foreign
    // A successful response of the history has these fields (routes/history.ts).
    return (result as (Link & { time: string; contentType: string })[]).map(
      ({ time, contentType, ...rest }) => ({
        ...rest,
        time: Date.parse(time),
        isImage: contentType.startsWith('image/'),
      }),
    )
  } catch (error) {
    return error instanceof SyntaxError ? words.foreign : words.unreachable
  }
}

function renderStored(kept: StoredLink): HTMLLIElement {
  const row = makeRow(kept.name, showTime(kept.time))
  show(row, 'stored', words.stored)
  showLink(row, kept)
  if (kept.isImage) showThumbnail(row, kept.url)
  return row
}

/** The links in the browser's storage; none if it is unavailable or damaged. */
function read(): readonly StoredLink[] {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(STORAGE) ?? '[]')
    return Array.isArray(value) ? value.filter(isSaved).filter(isCurrent) : []
  } catch {
    return []
  }
}

function isSaved(value: unknown): value is StoredLink {
  // Nothing is assumed about the members: each is checked below.
  const { url, name, time } = (value ?? {}) as Partial<StoredLink>
  return typeof url === 'string' && typeof name === 'string' && Number.isFinite(time)
}

/** Whether the file of a link has not expired yet. */
function isCurrent({ expiresAt }: StoredLink): boolean {
  return expiresAt === undefined || !(Date.parse(expiresAt) <= Date.now())
}

function write(links: readonly StoredLink[]): void {
  try {
    if (links.length > 0) localStorage.setItem(STORAGE, JSON.stringify(links))
    else localStorage.removeItem(STORAGE)
  } catch {
    // The storage is full or switched off: the list is then not kept.
  }
}
