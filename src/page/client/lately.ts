import { showLink } from './formats.ts'
import type { Link } from './links.ts'
import { makeRow, show, showThumbnail } from './row.ts'
import { ROOT_PATH } from './send.ts'
import { element, words } from './words.ts'

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
const list = details.querySelector('ol') as HTMLOListElement
const field = element<HTMLInputElement>('lately-text')
const date = new Intl.DateTimeFormat(document.documentElement.lang, {
  dateStyle: 'medium',
  timeStyle: 'short',
})

/** Keeps a link in this browser, where it goes to nobody. */
export function keep({ url, name, isImage }: Link): void {
  const others = read().filter(kept => kept.url !== url)
  write([{ url, name, isImage, time: Date.now() }, ...others].slice(0, MOST_KEPT))
  refresh()
}

export function setUpLately(): void {
  details.addEventListener('toggle', refresh)
  field.addEventListener('input', refresh)
  element('forget').addEventListener('click', () => {
    write([])
    details.open = false
    refresh()
  })
  refresh()
}

/** Pictures are asked for when somebody looks. */
function refresh(): void {
  const all = read()
  details.hidden = all.length === 0
  const wanted = field.value.trim().toLowerCase()
  const found = all.filter(({ name, url }) => `${name}\n${url}`.toLowerCase().includes(wanted))
  element('lately-none').hidden = found.length > 0
  list.replaceChildren(...(details.open ? found.slice(0, MOST_SHOWN).map(renderKept) : []))
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
