import { type RawBuilder, sql } from '../packages/kysely.ts'
import type { StoreAccess } from './access.ts'
import type { HistoryFilter, HistoryStore } from './contract.ts'
import type { ObjectId } from './expiry-contract.ts'
import { toEntry } from './history-columns.ts'
import { prune } from './prune.ts'
import type { Database } from './tables.ts'

type Filter = Omit<HistoryFilter, 'limit'>

const LATEST = sql`time desc, job_id, position desc`
/** The order of the SQLite indexes with times. With another order, SQLite may sort all entries to find the first few. */
const LATEST_ROW = sql`time desc, rowid desc`

/** The history of a store. */
export function createHistoryStore(access: StoreAccess): HistoryStore {
  const { read, index, hasRowids } = access
  /** Creates the indexes that a filter needs. They only have entries that are not removed. */
  const prepare = async ({ key, keys, object, by, sha256, isRemoved }: Filter) => {
    if (isRemoved !== false) return
    if (sha256 !== undefined) await index('bytes')
    if (by !== undefined) await index('callers')
    if (key !== undefined || keys !== undefined || object !== undefined) await index('keys')
    if (object !== undefined) await index('objects')
  }

  return {
    async history({ limit, ...filter }) {
      await prepare(filter)
      return read(async db => {
        const rows = await select(db, filter)
          .selectAll()
          .orderBy(hasRowids ? LATEST_ROW : LATEST)
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

    async pruneHistory(before, among, but, keptLinks) {
      await index('objects')
      // An expression, because PostgreSQL would look for the last key with the index of keys, and read all younger entries.
      const lastKey = sql<string | null>`max(job_id || '')`
      const last = await read(db =>
        db.selectFrom('history').select(lastKey.as('key')).where('time', '<', before).executeTakeFirst(),
      )
      if (!last?.key) return 0
      return prune(access, 'history', before, isForgettable(among, but, keptLinks), last.key)
    },
  }
}

function select(db: Database, filter: Filter) {
  const { destination, among, text, name, link, folder, key, object, keys, url, caller, sha256 } = filter
  const { jobId, requestId, by, since, before, isRemoved } = filter
  let query = db.selectFrom('history')
  if (destination !== undefined) {
    const below = isLike('destination', `${escapeLike(destination)}/%`)
    query = query.where(eb => eb.or([eb('destination', '=', destination), below]))
  }
  if (among !== undefined) query = query.where(isAmong('destination', among))
  if (folder !== undefined) query = query.where(isLike('key', `${escapeLike(folder)}/%`))
  if (key !== undefined) query = query.where('key', '=', key)
  if (object !== undefined) query = query.where(isOf(object))
  if (keys !== undefined) query = query.where(isAmong('key', keys))
  if (url !== undefined) query = query.where('url', '=', url)
  // A complete hash is a separate case, because its index returns the entries in the order of time. A range does not.
  if (sha256?.length === 64) query = query.where('sha256', '=', sha256)
  else if (sha256 !== undefined)
    query = query.where('sha256', '>=', sha256).where('sha256', '<', `${sha256}g`)
  if (by !== undefined) query = query.where('caller', '=', by)
  if (since !== undefined) query = query.where('time', '>=', since)
  if (before !== undefined) query = query.where('time', '<', before)
  // The condition of an object already excludes removed entries. With a second condition, all entries would be read.
  if (isRemoved !== undefined && object === undefined)
    query = query.where('removed_at', isRemoved ? 'is not' : 'is', null)
  if (link !== undefined) query = query.where(holds('url', link))
  if (caller !== undefined) query = query.where(holds('caller', caller))
  if (jobId !== undefined) query = query.where('job_id', '=', jobId)
  if (requestId !== undefined) query = query.where('request_id', '=', requestId)
  if (name !== undefined) {
    // The last segment of the key: no slash follows the text.
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

/** @returns a condition that is never true if there are no values */
function isAmong(column: string, values: readonly string[]) {
  return values.length === 0
    ? sql<boolean>`1 = 0`
    : sql<boolean>`${sql.ref(column)} in (${sql.join([...values])})`
}

/**
 * Columns of the entries of an object that are not removed. Each part uses its own index.
 *
 * @param isCertain excludes entries that a destination has stored at another location
 */
export function entriesOf(columns: RawBuilder<unknown>, { object, aliases }: ObjectId, isCertain: boolean) {
  const among = isCertain ? sql`and place is null` : sql`and (place is null or place || key <> ${object})`
  const parts = [
    sql`place || key = ${object}`,
    ...aliases.map(({ destination, key }) => sql`key = ${key} and destination = ${destination} ${among}`),
  ].map(condition => sql`select ${columns} from history where ${condition} and removed_at is null`)
  return sql.join(parts, sql` union all `)
}

const NAME = sql`job_id, position, destination`

/** Condition for the entries of an object. Entries without a location are found by their destination. */
export const isOf = (object: ObjectId, limit?: number) => {
  const entries = entriesOf(NAME, object, true)
  const few = limit === undefined ? entries : sql`select ${NAME} from (${entries}) as entries limit ${limit}`
  return sql<boolean>`(${NAME}) in (${few})`
}

/**
 * Entries of objects that still have to be removed are kept, because the removal checks the expiry of all of them. They are
 * counted, because PostgreSQL would read the whole history for `exists`.
 */
function isForgettable(among?: readonly string[], but: readonly string[] = [], keptLinks?: string) {
  const isKept = sql`not exists (select 1 from expiries where expiries.destination = history.destination
    and expiries.key = history.key) and (select count(*) from history as other join expiries
    on expiries.destination = other.destination and expiries.key = other.key
    where other.place || other.key = history.place || history.key and other.removed_at is null) = 0`
  const isMeant = among === undefined ? isKept : sql`${isKept} and ${isAmong('destination', among)}`
  const isOther = keptLinks === undefined ? isMeant : sql`${isMeant} and not ${holds('url', keptLinks)}`
  return sql`and ${isOther} and not ${isAmong('destination', but)}`
}

function escapeLike(text: string): string {
  return text.replace(/[%_\\]/g, '\\$&')
}
