import { showLink } from './formats.ts'
import { keyHeaders } from './key.ts'
import type { Link } from './links.ts'
import { makeRow, show, showThumbnail } from './row.ts'
import { addressOf, ROOT_PATH } from './send.ts'
import { announce, element, fill, words } from './words.ts'

interface Kept extends Link {
  /** Milliseconds since the epoch. */
  readonly time: number
}

/** Of this server: others may lie below other paths of the same host. */
const PLACE = `upload-server-links ${ROOT_PATH}`
/** How many links are kept, and how many are shown at a time; a search finds the others. */
const MOST_KEPT = 500
const MOST_SHOWN = 20

const details = element<HTMLDetailsElement>('lately')
const title = details.querySelector('summary') as HTMLElement
const list = details.querySelector('ol') as HTMLOListElement
const field = element<HTMLInputElement>('lately-text')
const problem = element('lately-problem')
const none = element('lately-none')
const date = new Intl.DateTimeFormat(document.documentElement.lang, {
  dateStyle: 'medium',
  timeStyle: 'short',
})
const ownTitle = title.textContent

let asked = new AbortController()

/** Keeps a link in this browser, where it goes to nobody. */
export function keep({ url, name, isImage }: Link): void {
  const others = read().filter(kept => kept.url !== url)
  write([{ url, name, isImage, time: Date.now() }, ...others].slice(0, MOST_KEPT))
  refreshLately()
}

export function setUpLately(): void {
  let typing: number
  details.addEventListener('toggle', refreshLately)
  field.addEventListener('input', () => {
    clearTimeout(typing)
    typing = setTimeout(refreshLately, 200) // the server is not asked for each letter
  })
  element('forget').addEventListener('click', () => {
    write([])
    details.open = false
    refreshLately()
  })
  refreshLately()
}

/** Shows the list of the server where it has one for the visitor, else the browser's own. */
export function refreshLately(): void {
  asked.abort()
  asked = new AbortController()
  const isServers = element('visitor').dataset['history'] !== undefined
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

/** Pictures are asked for when somebody looks. */
function showList(found: readonly Kept[], isServers: boolean, why = ''): void {
  const kept = read().length
  details.hidden = !kept && !isServers && !why
  title.textContent = isServers ? words.historyTitle : ownTitle
  element('forget').hidden = !kept
  problem.textContent = why
  problem.hidden = !why
  none.hidden = found.length > 0 || !details.open
  list.replaceChildren(...(details.open ? found.slice(0, MOST_SHOWN).map(renderKept) : []))
}

function search(all: readonly Kept[]): readonly Kept[] {
  const wanted = field.value.trim().toLowerCase()
  return all.filter(({ name, url }) => `${name}\n${url}`.toLowerCase().includes(wanted))
}

/** @returns what the server has, or why that is not known */
async function fetchHistory(signal: AbortSignal): Promise<readonly Kept[] | string> {
  const query = new URLSearchParams({ text: field.value, limit: String(MOST_SHOWN) })
  try {
    const response = await fetch(addressOf(`history?${query}`), { headers: keyHeaders(), signal })
    const { success, result, code } = await response.json()
    if (!success) return words.failures[code] ?? words.unreadable
    return (result as { url: string; name: string; time: string; contentType: string }[]).map(
      ({ time, contentType, ...rest }) => ({
        ...rest,
        time: Date.parse(time),
        isImage: contentType.startsWith('image/'),
      }),
    )
  } catch (error) {
    return error instanceof SyntaxError ? words.unreadable : words.unreachable
  }
}

function renderKept(kept: Kept): HTMLLIElement {
  const row = makeRow(kept.name, date.format(kept.time))
  show(row, 'stored', words.stored)
  showLink(row, kept)
  if (kept.isImage) showThumbnail(row, kept.url)
  return row
}

/** Nothing where the browser keeps nothing. */
function read(): readonly Kept[] {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(PLACE) ?? '[]')
    return Array.isArray(value) ? value.filter(isKept) : []
  } catch {
    return []
  }
}

function isKept(value: unknown): value is Kept {
  const { url, name, time } = (value ?? {}) as Partial<Kept>
  return typeof url === 'string' && typeof name === 'string' && Number.isFinite(time)
}

function write(links: readonly Kept[]): void {
  try {
    if (links.length > 0) localStorage.setItem(PLACE, JSON.stringify(links))
    else localStorage.removeItem(PLACE)
  } catch {
    // Full or switched off: then there is no such list.
  }
}
