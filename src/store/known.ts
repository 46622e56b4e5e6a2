import { type Db, List, sql } from './sql.ts'

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

/** Hashes in one query. */
const AT_ONCE = 100
/** Maximum number of files with the hashes of one query, latest first. */
const MOST_ROWS = 1000

/**
 * Finds objects with these contents that a client has stored at a destination, the latest upload first. Objects of other clients
 * are not found: a hash must not tell what others have.
 *
 * @param caller as the history names the client
 * @param destination `provider/configName`
 */
export async function findKnown(
  db: Db,
  caller: string,
  destination: string,
  location: string,
  hashes: readonly string[],
): Promise<KnownObject[]> {
  const found: KnownObject[] = []
  for (let at = 0; at < hashes.length; at += AT_ONCE) {
    const some = hashes.slice(at, at + AT_ONCE)
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
        where files.sha256 in (${new List(some)}) and files.caller = ${caller} and files.destination = ${destination}
        and files.location = ${location} and files.removed_at is null and objects.state = 'stored'
        and objects.sha256 = files.sha256 order by files.upload desc limit ${MOST_ROWS}`,
    )
    for (const { delete_url, content_type, ...row } of rows)
      found.push({ ...row, location, deleteUrl: delete_url ?? undefined, contentType: content_type })
  }
  return found
}
