import { setImmediate as nextTurn } from 'node:timers/promises'
import type { HistoryEntry } from './contract.ts'
import type { Database } from './database.ts'
import { REQUEST_KEPT_MS } from './requests.ts'
import { type Db, every, List, Raw, type Sql, sql } from './sql.ts'
import { idPrefix, timeOf } from './upload-id.ts'

export interface HistoryFilter {
  /** `provider` or `provider/configName`. */
  readonly destination?: string | undefined
  /** Only at one of these, `provider/configName`. */
  readonly among?: readonly string[] | undefined
  /** A part of the origin, the key or the URL. */
  readonly text?: string | undefined
  /** A part of the origin or of the last segment of the key. */
  readonly name?: string | undefined
  /** The folder of the object key or one of its parents, without a final slash. */
  readonly folder?: string | undefined
  /** The whole key. There is no index for it, so all entries are read. */
  readonly key?: string | undefined
  readonly location?: string | undefined
  /** One of these objects, by their names. */
  readonly objects?: readonly string[] | undefined
  /** A part of the URL. */
  readonly link?: string | undefined
  /** One of these URLs. There is no index for it. */
  readonly urls?: readonly string[] | undefined
  /** The whole name of the caller. */
  readonly by?: string | undefined
  /** A part of the caller's name. */
  readonly caller?: string | undefined
  readonly jobId?: string | undefined
  /** There is no index for it. */
  readonly requestId?: string | undefined
  /** The hash or its beginning. */
  readonly sha256?: string | undefined
  /** One of these contents, by their whole hashes. */
  readonly hashes?: readonly string[] | undefined
  /** The whole name of a list of reviewed images (`REVIEW_SUFFIX`). The condition is that of the index: longer names are not found. */
  readonly review?: string | undefined
  /** Whether its object is stored and has its content. Default: does not matter. */
  readonly isCurrent?: true | undefined
  /** Milliseconds since the epoch. */
  readonly since?: number | undefined
  /** Only older ones, milliseconds since the epoch. */
  readonly before?: number | undefined
  /** Only entries that come after this one in the order of the history: the last one of the page before. */
  readonly after?: Pick<HistoryEntry, 'jobId' | 'index'> | undefined
  /** Whether it was removed. Default: both. */
  readonly isRemoved?: boolean | undefined
  /** Newest first. */
  readonly limit: number
}

/** Entries with their current expiry: a later upload of the same object may have extended it. Newest first. */
export async function findFiles(db: Db, { limit, ...filter }: HistoryFilter): Promise<HistoryEntry[]> {
  const rows = await db.all<FileRow>(
    sql`select ${COLUMNS} from files left join objects on objects.name = files.object where ${conditionOf(filter)}
      order by files.upload desc, files.position desc limit ${limit}`,
  )
  return rows.map(toEntry)
}

/** The number of entries. */
export async function countFiles(
  db: Db,
  filter: Omit<HistoryFilter, 'limit' | 'isCurrent'>,
): Promise<number> {
  const [row] = await db.all<{ count: number }>(
    sql`select count(*) as count from files where ${conditionOf(filter)}`,
  )
  return Number(row?.count ?? 0)
}

function conditionOf(filter: Omit<HistoryFilter, 'limit'>): Sql {
  const { destination, among, text, name, folder, key, objects, link, urls, by, caller } = filter
  const { location, jobId, requestId, sha256, hashes, review, isCurrent, since, before, after, isRemoved } =
    filter
  const all: Sql[] = []
  if (destination !== undefined)
    all.push(
      sql`(files.destination = ${destination} or ${isLike(sql`files.destination`, `${escapeLike(destination)}/%`)})`,
    )
  if (among !== undefined) all.push(sql`files.destination in (${new List(among)})`)
  if (folder !== undefined) all.push(isLike(sql`files.key`, `${escapeLike(folder)}/%`))
  if (key !== undefined) all.push(sql`files.key = ${key}`)
  if (location !== undefined) all.push(sql`files.location = ${location}`)
  if (objects !== undefined) all.push(sql`files.object in (${new List(objects)})`)
  if (urls !== undefined) all.push(sql`files.url in (${new List(urls)})`)
  if (link !== undefined) all.push(holds(sql`files.url`, link))
  if (by !== undefined) all.push(sql`files.caller = ${by}`)
  if (caller !== undefined) all.push(holds(sql`files.caller`, caller))
  if (jobId !== undefined) all.push(sql`files.upload = ${jobId}`)
  if (requestId !== undefined) all.push(sql`files.request_id = ${requestId}`)
  // A complete hash is a separate case, because its index returns few entries.
  if (sha256?.length === 64) all.push(sql`files.sha256 = ${sha256}`)
  else if (sha256 !== undefined) all.push(sql`files.sha256 >= ${sha256} and files.sha256 < ${`${sha256}g`}`)
  if (hashes !== undefined) all.push(sql`files.sha256 in (${new List(hashes)})`)
  if (review !== undefined)
    all.push(
      sql`files.origin = ${review} and files.origin like '%.review.json' and length(files.origin) < 200`,
    )
  if (isCurrent) all.push(sql`objects.state = 'stored' and objects.sha256 = files.sha256`)
  if (since !== undefined) all.push(sql`files.upload >= ${idPrefix(since)}`)
  if (before !== undefined) all.push(sql`files.upload < ${idPrefix(before)}`)
  if (after !== undefined) all.push(sql`(files.upload, files.position) < (${after.jobId}, ${after.index})`)
  if (isRemoved !== undefined)
    all.push(isRemoved ? sql`files.removed_at is not null` : sql`files.removed_at is null`)
  if (name !== undefined) {
    // The last segment of the key: no slash follows the text.
    const pattern = `%${escapeLike(name)}%`
    const inName = sql`(${isLike(sql`files.key`, pattern)} and not ${isLike(sql`files.key`, `${pattern}/%`)})`
    all.push(sql`(${holds(sql`files.origin`, name)} or ${inName})`)
  }
  if (text !== undefined)
    all.push(
      sql`(${holds(sql`files.origin`, text)} or ${holds(sql`files.key`, text)} or ${holds(sql`files.url`, text)})`,
    )
  return every(all)
}

const isLike = (column: Sql, pattern: string) => sql`lower(${column}) like lower(${pattern}) escape '\\'`

const holds = (column: Sql, text: string) => isLike(column, `%${escapeLike(text)}%`)

function escapeLike(text: string): string {
  return text.replace(/[%_\\]/g, '\\$&')
}

/** An entry as the database returns it. */
type FileRow = Omit<HistoryEntry, 'time' | 'deleteUrl' | 'expiresAt' | 'removedAt'> & {
  readonly deleteUrl: string | null
  readonly expiresAt: number | null
  readonly removedAt: number | null
}

const COLUMNS = new Raw(`files.position as "index", files.origin, files.url, files.key, files.size,
  files.content_type as "contentType", files.sha256, files.location, files.upload as "jobId", files.destination, files.caller,
  files.request_id as "requestId", files.delete_url as "deleteUrl", files.removed_at as "removedAt",
  case when files.removed_at is null and objects.name is not null then objects.expires_at
    else files.expires_at end as "expiresAt"`)

function toEntry({ deleteUrl, expiresAt, removedAt, ...row }: FileRow): HistoryEntry {
  return {
    ...row,
    time: timeOf(row.jobId),
    ...(deleteUrl !== null && { deleteUrl }),
    ...(expiresAt !== null && { expiresAt }),
    ...(removedAt !== null && { removedAt }),
  }
}

/** Rows of one transaction. SQLite works in the event loop, so it blocks everything else. */
const AT_ONCE = 500

/**
 * Deletes older entries, and what the database knows of objects without entries. Entries of objects that still have to be
 * removed are kept.
 *
 * @param among only at these destinations, `provider/configName`; default: all
 * @param but except at these, because their URLs need the entries
 * @param keptLinks except entries whose URL contains this
 * @returns the number of deleted entries
 */
export async function pruneFiles(
  database: Database,
  before: number,
  {
    among,
    but = [],
    keptLinks,
  }: { readonly among?: readonly string[]; readonly but?: readonly string[]; readonly keptLinks?: string },
): Promise<number> {
  const conditions = [
    ...(among === undefined ? [] : [sql`files.destination in (${new List(among)})`]),
    ...(but.length === 0 ? [] : [sql`files.destination not in (${new List(but)})`]),
    ...(keptLinks === undefined ? [] : [sql`not ${holds(sql`files.url`, keptLinks)}`]),
  ]
  let count = 0
  // What is kept is not looked at again.
  for (let from = ''; ; ) {
    const deleted = await database.tx(async db => {
      const gone = await db.all<{ upload: string; object: string }>(
        sql`delete from files where (upload, position, destination) in (
            select upload, position, files.destination from files left join objects on objects.name = files.object
            where upload >= ${from} and upload < ${idPrefix(before)}
            and (removed_at is not null or objects.expires_at is null) and ${every(conditions)}
            order by upload limit ${AT_ONCE})
          returning upload, object`,
      )
      await db.run(
        sql`delete from objects where name in (${new List(gone.map(({ object }) => object))}) and state = 'stored'
          and expires_at is null and not exists (select 1 from files where files.object = objects.name)`,
      )
      return gone
    })
    count += deleted.length
    if (deleted.length < AT_ONCE) return count
    for (const { upload } of deleted) if (upload > from) from = upload
    await nextTurn()
  }
}

const DAY_MS = 24 * 60 * 60 * 1000

/**
 * Deletes a bounded number of old rows: uploads that ended before a time, idempotency keys, windows of quotas, processes.
 *
 * @param uploadsBefore milliseconds since the epoch. Uploads tell the responses of idempotency keys, so they stay as long
 * @returns whether there may be more
 */
export async function pruneOld(database: Database, uploadsBefore: number): Promise<boolean> {
  return database.tx(async db => {
    const now = await db.now()
    const ended = Math.min(uploadsBefore, now - REQUEST_KEPT_MS)
    const counts = [
      await db.run(
        sql`delete from uploads where id in (select id from uploads where id < ${idPrefix(ended)} and ended_at < ${ended}
          order by id limit ${AT_ONCE})`,
      ),
      await db.run(
        sql`delete from requests where key in (select key from requests where created_at < ${now - REQUEST_KEPT_MS}
          order by created_at limit ${AT_ONCE})`,
      ),
    ]
    await db.run(sql`delete from quotas where starts_at + window_ms < ${now}`)
    await db.run(sql`delete from owners where seen_at < ${now - DAY_MS}`)
    return counts.includes(AT_ONCE)
  })
}
