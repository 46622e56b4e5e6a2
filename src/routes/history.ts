import type { Request, Response } from 'express'
import { UploadError } from '../errors.ts'
import { baseName } from '../payload/file-name.ts'
import type { HistoryEntry } from '../store/contract.ts'
import { findFiles } from '../store/history.ts'
import type { Uploader } from '../uploader/app.ts'
import { idOf } from '../uploader/destinations.ts'
import type { Caller } from '../uploader/input.ts'
import { withLinks } from '../uploader/links.ts'
import { type Access, admitSameSite } from './access.ts'
import type { BaseUrl } from './base-url.ts'
import type { History } from './contract.ts'
import { announceQuotas } from './rate-limit.ts'
import { parametersOf } from './target.ts'

/** Number of a client's latest entries that are searched, so that no search scans the whole database. */
const MOST_ENTRIES = 1000
const MOST_SHOWN = 100
const SHOWN = 20
/** Maximum length of a search text, characters. */
const LONGEST_TEXT = 200

/** Whether the uploads of a client can be told from those of others. */
export function isKnown({ admittedBy }: Caller): boolean {
  return admittedBy !== 'anonymous'
}

/** GET /history: recent uploads of this client only, newest first. */
export function createHistoryRoute(
  uploader: Pick<Uploader, 'destinations' | 'database'>,
  access: Access,
  isOn: boolean,
  baseOf: BaseUrl,
): (req: Request, res: Response) => Promise<void> {
  const { destinations, database } = uploader
  const among = new Set(destinations.map(idOf))
  const mirrors = new Set(destinations.flatMap(one => one.mirrors.map(({ destination }) => destination)))
  return async (req, res) => {
    if (!isOn)
      throw new UploadError(
        'not_found',
        'The upload history is disabled. Set "page.history" to true to enable it.',
      )
    const query = parametersOf(req.url)
    const caller = await admitSameSite(req, res, query, access)
    if (caller.quotas) await announceQuotas(res, caller.quotas, uploader)
    if (!isKnown(caller))
      throw new UploadError(
        'unauthorized',
        'The history is only available with an upload key. Send it in the X-Upload-Key header.',
      )
    const { text, limit } = readQuery(query)
    const entries = await database.read(db =>
      findFiles(db, { by: caller.name, isRemoved: false, limit: MOST_ENTRIES }),
    )
    const base = baseOf(req)
    const here = entries
      .filter(({ destination }) => among.has(destination))
      .map(entry => withLinks(entry, base, destinations))
    const found = withoutCopies(here, mirrors).filter(entry =>
      `${fileNameOf(entry)}\n${entry.url}`.toLowerCase().includes(text),
    )
    const history: History = { success: true, result: found.slice(0, limit).map(describe) }
    res.set({ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' }).json(history)
  }
}

function readQuery(query: URLSearchParams): { text: string; limit: number } {
  const text = (query.get('text') ?? '').trim()
  if (text.length > LONGEST_TEXT)
    throw new UploadError('invalid_request', `"text" must have up to ${LONGEST_TEXT} characters.`)
  const limit = query.get('limit') || String(SHOWN)
  if (!/^[1-9]\d{0,2}$/.test(limit) || Number(limit) > MOST_SHOWN)
    throw new UploadError('invalid_request', `"limit" must be a whole number from 1 to ${MOST_SHOWN}.`)
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

/** Omits deletion links and what only the operator needs. */
function describe(entry: HistoryEntry): History['result'][number] {
  const { url, time, size, contentType, expiresAt } = entry
  return {
    url,
    name: fileNameOf(entry),
    time: new Date(time).toISOString(),
    size,
    contentType,
    ...(expiresAt !== undefined && { expiresAt: new Date(expiresAt).toISOString() }),
  }
}

/** The name that the client sent, or else the name under which the file was stored. */
function fileNameOf({ origin, key }: HistoryEntry): string {
  const isNameless = /^(?:data:|clipboard$)/i.test(origin)
  const path = /^https?:/i.test(origin) && URL.canParse(origin) ? new URL(origin).pathname : origin
  return (!isNameless && baseName(path)) || baseName(key)
}
