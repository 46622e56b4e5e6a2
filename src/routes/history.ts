import type { Request, Response } from 'express'
import { UploadError } from '../errors.ts'
import { baseName } from '../payload/file-name.ts'
import type { HistoryEntry } from '../store/contract.ts'
import { idOf } from '../uploader/delivery/destinations.ts'
import type { Uploader } from '../uploader/index.ts'
import type { Caller } from '../uploader/input.ts'
import { type Access, admitCaller } from './access.ts'
import type { History } from './contract.ts'
import { queryOf } from './target.ts'

/** How many of a caller's latest entries are looked at, so that no search goes through all of a store. */
const MOST_ENTRIES = 1000
const MOST_SHOWN = 100
const SHOWN = 20
/** Characters of a search. */
const LONGEST_TEXT = 200

/** Whether a caller's uploads are told from those of others. */
export function isKnown({ admittedBy }: Caller): boolean {
  return admittedBy !== 'anonymous'
}

/** GET /history: what the caller itself uploaded lately, newest first. Nobody is told what others did. */
export function createHistoryRoute(
  { destinations, store }: Pick<Uploader, 'destinations' | 'store'>,
  access: Access,
  isOn: boolean,
): (req: Request, res: Response) => Promise<void> {
  const among = new Set(destinations.map(idOf))
  const mirrors = new Set(destinations.flatMap(one => one.mirrors.map(({ destination }) => destination)))
  return async (req, res) => {
    if (!isOn)
      throw new UploadError('not_found', 'This server shows no history: its setting "page.history" is off.')
    const query = queryOf(req.url)
    const caller = admitCaller(req, res, query, access)
    if (!isKnown(caller))
      throw new UploadError('unauthorized', 'Only callers with an upload key have a history. Send yours.')
    const { text, limit } = readQuery(query)
    const entries = await store.history({ by: caller.name, isRemoved: false, limit: MOST_ENTRIES })
    const here = entries.filter(({ destination }) => among.has(destination))
    const found = withoutCopies(here, mirrors)
      .map(describe)
      .filter(({ name, url }) => `${name}\n${url}`.toLowerCase().includes(text))
    const history: History = { success: true, result: found.slice(0, limit) }
    res.set({ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' }).json(history)
  }
}

function readQuery(query: URLSearchParams): { text: string; limit: number } {
  const text = (query.get('text') ?? '').trim()
  if (text.length > LONGEST_TEXT)
    throw new UploadError('invalid_request', `"text" has ${LONGEST_TEXT} characters at most.`)
  const limit = query.get('limit') || String(SHOWN)
  if (!/^[1-9]\d{0,2}$/.test(limit) || Number(limit) > MOST_SHOWN)
    throw new UploadError('invalid_request', `"limit" is a whole number from 1 to ${MOST_SHOWN}.`)
  return { text: text.toLowerCase(), limit: Number(limit) }
}

/** One entry for each upload, and for each link the latest one. @param mirrors `provider/configName` */
function withoutCopies(entries: readonly HistoryEntry[], mirrors: ReadonlySet<string>): HistoryEntry[] {
  const inputs = new Map<string, HistoryEntry>()
  for (const entry of entries) {
    const id = `${entry.jobId}/${entry.index}`
    const other = inputs.get(id)
    if (!other || (mirrors.has(other.destination) && !mirrors.has(entry.destination))) inputs.set(id, entry)
  }
  const urls = new Set<string>()
  return [...inputs.values()].filter(({ url }) => !urls.has(url) && urls.add(url))
}

/** What leads to a removal is not in it, nor what only the operator needs. */
function describe(entry: HistoryEntry): History['result'][number] {
  const { url, time, size, contentType, expiresAt } = entry
  return {
    url,
    name: nameOf(entry),
    time: new Date(time).toISOString(),
    size,
    contentType,
    ...(expiresAt !== undefined && { expiresAt: new Date(expiresAt).toISOString() }),
  }
}

/** As the caller named it, or as it was stored when it had no name. */
function nameOf({ origin, key }: HistoryEntry): string {
  const isNameless = /^(?:data:|clipboard$)/i.test(origin)
  const path = /^https?:/i.test(origin) && URL.canParse(origin) ? new URL(origin).pathname : origin
  return (!isNameless && baseName(path)) || baseName(key)
}
