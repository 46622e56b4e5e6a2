import type { Link } from '../links.ts'
import { announce, element, fill, keep, part, readKept, titleOf, urlOf, words } from './page.ts'
import { makeRow, showStored, showTime } from './row.ts'
import { keyHeaders, me } from './visitor.ts'

interface StoredLink extends Link {
  /** Milliseconds since the epoch. */
  readonly time: number
}

/** Maximum number of links in the browser's storage, and of links shown at a time; a search finds the rest. */
const MAX_STORED = 500
const MAX_SHOWN = 20

const details = element<HTMLDetailsElement>('recent')
const field = element<HTMLInputElement>('recent-text')
const note = element('recent-note')
/** The latest refresh: the response to an earlier one is ignored. */
let latest = 0

export function setUpRecent(): void {
  let typing: number
  details.addEventListener('toggle', () => void refreshRecent())
  field.addEventListener('input', () => {
    clearTimeout(typing)
    typing = setTimeout(refreshRecent, 200) // so that the server does not get a request per keystroke
  })
  element('clear-recent').addEventListener('click', () => {
    keep('links', undefined)
    details.open = false
    void refreshRecent()
  })
  void refreshRecent()
}

/** Saves a link in the storage of this browser only. */
export function remember(link: Link): void {
  const others = readLinks().filter(({ url }) => url !== link.url)
  keep('links', [{ ...link, time: Date.now() }, ...others].slice(0, MAX_STORED))
  void refreshRecent()
}

/**
 * Shows the server's upload history if the visitor may read it, otherwise this browser's own list. A closed list has no
 * rows, so that no thumbnail is loaded unseen.
 */
export async function refreshRecent(): Promise<void> {
  const own = ++latest
  const kept = readLinks()
  const isServers = me?.visitor.admittedBy !== undefined && me.visitor.hasHistory
  const history = isServers && details.open ? await fetchHistory() : undefined
  if (own !== latest) return
  const problem = typeof history === 'string' ? fill(words.recent.historyFailed, { reason: history }) : ''
  const wanted = field.value.trim().toLowerCase()
  const found = Array.isArray(history)
    ? history
    : kept.filter(({ name, url }) => `${name}\n${url}`.toLowerCase().includes(wanted))
  const shown = details.open ? found.slice(0, MAX_SHOWN) : []
  details.hidden = kept.length === 0 && !isServers
  part(details, 'summary').textContent = isServers && !problem ? words.recent.history : words.recent.title
  element('clear-recent').hidden = kept.length === 0
  note.textContent = problem || (details.open && found.length === 0 ? words.recent.none : '')
  note.hidden = note.textContent === ''
  if (problem) announce(problem)
  part(details, 'ol').replaceChildren(
    ...shown.map(link => {
      const row = makeRow(link.name, showTime(link.time), link.isImage ? link.url : undefined)
      showStored(row, link)
      return row
    }),
  )
}

/** @returns the server's entries, or the reason why they could not be read */
async function fetchHistory(): Promise<StoredLink[] | string> {
  const query = new URLSearchParams({ text: field.value, limit: String(MAX_SHOWN) })
  try {
    const { success, result, code } = await (
      await fetch(urlOf(`history?${query}`), { headers: keyHeaders() })
    ).json()
    if (!success) return titleOf(code)
    // A successful response of the history has these fields (routes/history.ts).
    return (result as (Link & { time: string; contentType: string })[]).map(
      ({ time, contentType, ...rest }) => ({
        ...rest,
        time: Date.parse(time),
        isImage: contentType.startsWith('image/'),
      }),
    )
  } catch (error) {
    return error instanceof SyntaxError ? words.state.foreign : words.state.unreachable
  }
}

/** The links in the browser's storage whose files have not expired. */
function readLinks(): StoredLink[] {
  const kept = readKept('links')
  const isCurrent = ({ expiresAt }: StoredLink) =>
    expiresAt === undefined || Date.parse(expiresAt) > Date.now()
  return Array.isArray(kept) ? kept.filter(isLink).filter(isCurrent) : []
}

function isLink(value: unknown): value is StoredLink {
  // Nothing is assumed about the members: each is checked below.
  const { url, name, time } = (value ?? {}) as Partial<StoredLink>
  return typeof url === 'string' && typeof name === 'string' && Number.isFinite(time)
}
