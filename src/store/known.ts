import { type Db, List, type Sql, sql } from './sql.ts'

/** A stored object that has the content which a client asks for. */
export interface KnownObject {
  readonly sha256: string
  readonly location: string
  readonly key: string
  readonly url: string
  readonly deleteUrl: string | undefined
  readonly contentType: string
  /** Bytes. */
  readonly size: number
  readonly origin: string
}

/** The rows of a client at a destination. */
export interface KnownPlace {
  /** As the history names the client. */
  readonly caller: string
  /** `provider/configName`. */
  readonly destination: string
  readonly location: string
}

/** Hashes in one query. */
const AT_ONCE = 100
/** Maximum number of files with the hashes of one query, latest first. */
const MOST_ROWS = 1000

/**
 * Finds objects with these contents that a client has stored at a destination, the latest upload first. Objects of other clients
 * are not found: a hash must not tell what others have.
 */
export async function findKnown(
  db: Db,
  place: KnownPlace,
  hashes: readonly string[],
): Promise<KnownObject[]> {
  const found: KnownObject[] = []
  for (let at = 0; at < hashes.length; at += AT_ONCE) {
    const some = hashes.slice(at, at + AT_ONCE)
    found.push(...(await find(db, place, sql`files.sha256 in (${new List(some)})`, MOST_ROWS)))
  }
  return found
}

/**
 * The latest list of images (`REVIEW_SUFFIX`) of this name that a client has stored at a destination. The condition is that of the
 * index: longer names are not found.
 */
export async function findReview(db: Db, place: KnownPlace, name: string): Promise<KnownObject | undefined> {
  const condition = sql`files.origin = ${name} and files.origin like '%.review.json' and length(files.origin) < 200`
  const [latest] = await find(db, place, condition, 1)
  return latest
}

async function find(
  db: Db,
  { caller, destination, location }: KnownPlace,
  condition: Sql,
  most: number,
): Promise<KnownObject[]> {
  const rows = await db.all<{
    sha256: string
    key: string
    url: string
    delete_url: string | null
    content_type: string
    size: number
    origin: string
  }>(
    sql`select files.sha256, objects.key, files.url, files.delete_url, files.content_type, files.size, files.origin
      from files join objects on objects.name = files.object
      where ${condition} and files.caller = ${caller} and files.destination = ${destination}
      and files.location = ${location} and files.removed_at is null and objects.state = 'stored'
      and objects.sha256 = files.sha256 order by files.upload desc limit ${most}`,
  )
  return rows.map(({ delete_url, content_type, ...row }) => ({
    ...{ ...row, location, deleteUrl: delete_url ?? undefined, contentType: content_type },
  }))
}
