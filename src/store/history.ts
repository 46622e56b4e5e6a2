import { type Selectable, sql } from '../packages/kysely.ts'
import type { Access } from './access.ts'
import type { HistoryEntry, HistoryFilter, HistoryStore } from './contract.ts'
import { prune } from './prune.ts'
import type { Database, Tables } from './tables.ts'

type Filter = Omit<HistoryFilter, 'limit'>

/** The history of a store. */
export function createHistoryStore({ read, write, index }: Access): HistoryStore {
  /** Makes the index that a filter needs; they know what is kept. */
  const prepare = async ({ key, keys, by, sha256, isRemoved }: Filter) => {
    if (isRemoved !== false) return
    if (sha256 !== undefined) await index('bytes')
    if (by !== undefined) await index('callers')
    if (key !== undefined || keys !== undefined) await index('keys')
  }

  return {
    async history({ limit, ...filter }) {
      await prepare(filter)
      return read(async db => {
        const rows = await select(db, filter)
          .selectAll()
          .orderBy('time', 'desc')
          .orderBy('job_id')
          .orderBy('position', 'desc')
          .limit(limit)
          .execute()
        return rows.map(toEntry)
      })
    },

    async countHistory(filter) {
      await prepare(filter)
      return read(async db => {
        const row = await select(db, filter)
          .select(eb => eb.fn.countAll().as('count'))
          .executeTakeFirstOrThrow()
        return Number(row.count)
      })
    },

    pruneHistory: (before, among, but, keptLinks) =>
      prune(write, 'history', before, isForgettable(among, but, keptLinks)),
  }
}

function select(db: Database, filter: Filter) {
  const { destination, among, text, name, link, folder, key, keys, url, caller, sha256 } = filter
  const { jobId, requestId, by, since, before, isRemoved } = filter
  let query = db.selectFrom('history')
  if (destination !== undefined) {
    const below = isLike('destination', `${escapeLike(destination)}/%`)
    query = query.where(eb => eb.or([eb('destination', '=', destination), below]))
  }
  if (among !== undefined) query = query.where(isAmong('destination', among))
  if (folder !== undefined) query = query.where(isLike('key', `${escapeLike(folder)}/%`))
  if (key !== undefined) query = query.where('key', '=', key)
  if (keys !== undefined) query = query.where(isAmong('key', keys))
  if (url !== undefined) query = query.where('url', '=', url)
  if (sha256 !== undefined) query = query.where('sha256', '=', sha256)
  if (by !== undefined) query = query.where('caller', '=', by)
  if (since !== undefined) query = query.where('time', '>=', since)
  if (before !== undefined) query = query.where('time', '<', before)
  if (isRemoved !== undefined) query = query.where('removed_at', isRemoved ? 'is not' : 'is', null)
  if (link !== undefined) query = query.where(holds('url', link))
  if (caller !== undefined) query = query.where(holds('caller', caller))
  if (jobId !== undefined) query = query.where('job_id', '=', jobId)
  if (requestId !== undefined) query = query.where('request_id', '=', requestId)
  if (name !== undefined) {
    // What stands behind the last slash: no slash follows the text.
    const pattern = `%${escapeLike(name)}%`
    const inName = sql<boolean>`(${isLike('key', pattern)} and not ${isLike('key', `${pattern}/%`)})`
    query = query.where(eb => eb.or([holds('origin', name), inName]))
  }
  if (text !== undefined)
    query = query.where(eb => eb.or(['origin', 'key', 'url'].map(column => holds(column, text))))
  return query
}

const isLike = (column: string, pattern: string) =>
  sql<boolean>`lower(${sql.ref(column)}) like lower(${pattern}) escape '\\'`

const holds = (column: string, text: string) => isLike(column, `%${escapeLike(text)}%`)

/** @returns a condition that nothing fits when there are none */
function isAmong(column: string, values: readonly string[]) {
  return values.length === 0
    ? sql<boolean>`1 = 0`
    : sql<boolean>`${sql.ref(column)} in (${sql.join([...values])})`
}

/** The removal of an object asks what its other entries promise. */
function isForgettable(among?: readonly string[], but: readonly string[] = [], keptLinks?: string) {
  const isKept = sql`not exists (select 1 from expiries where expiries.destination = history.destination
    and expiries.key = history.key)`
  const isMeant = among === undefined ? isKept : sql`${isKept} and ${isAmong('destination', among)}`
  const isOther = keptLinks === undefined ? isMeant : sql`${isMeant} and not ${holds('url', keptLinks)}`
  return sql`and ${isOther} and not ${isAmong('destination', but)}`
}

function escapeLike(text: string): string {
  return text.replace(/[%_\\]/g, '\\$&')
}

export function toEntry(row: Selectable<Tables['history']>): HistoryEntry {
  return {
    time: row.time,
    jobId: row.job_id,
    index: row.position,
    origin: row.origin,
    url: row.url,
    key: row.key,
    size: row.size,
    contentType: row.content_type,
    sha256: row.sha256,
    deleteUrl: row.delete_url ?? undefined,
    destination: row.destination,
    caller: row.caller,
    requestId: row.request_id,
    ...(row.expires_at !== null && { expiresAt: row.expires_at }),
    ...(row.removed_at !== null && { removedAt: row.removed_at }),
  }
}
