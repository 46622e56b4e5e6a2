import { splitExtension } from '../payload/file-name.ts'
import { type End, isHeld, objectName } from './objects.ts'
import { type Db, sql } from './sql.ts'

export type OnConflict = 'replace' | 'rename' | 'error'

/** Where a file is to be stored, and what to do if the object key is in use. */
export interface Wanted {
  /** `provider/configName`. */
  readonly destination: string
  /** Location of the destination, up to where the object key begins. */
  readonly location: string
  readonly key: string
  /** Hash of the content, hex. */
  readonly sha256: string
  readonly onConflict: OnConflict
  /** Whether the key has a part that only this content has, so that nothing else than the server stores something there. */
  readonly isContentKey: boolean
  /** Whether the same content at any other key of the destination may be used instead. */
  readonly dedupe: boolean
  readonly expiresAt: End
}

/** Result of a claim: what the upload does with the object. */
export type Claim =
  /** It stores it. `mayExist`: something that the database does not know may be there, so the destination must be asked. */
  | { readonly is: 'mine'; readonly name: string; readonly key: string; readonly mayExist: boolean }
  /** The same content is stored there, under this URL. */
  | {
      readonly is: 'same'
      readonly name: string
      readonly key: string
      readonly url: string
      readonly deleteUrl: string | undefined
    }
  /** The same content is being stored there, or the object is being removed. Ask again in a moment. */
  | { readonly is: 'wait' }
  /** The key is in use, and `onConflict` is `error`. */
  | { readonly is: 'conflict'; readonly key: string }

/** Who claims objects. */
export interface Claimant {
  /** The upload. When it has ended, the process: a part of its work goes on. */
  id: string
  /** Names of the objects that it has claimed for its files. */
  readonly claimed: Set<string>
}

interface ObjectRow {
  readonly name: string
  readonly key: string
  readonly sha256: string
  readonly state: 'storing' | 'stored' | 'removing'
  readonly holder: string | null
  /** 1: nothing was there before. */
  readonly is_new: number
  readonly following: number
}

/**
 * Claims the wanted key, or one with `-2`, `-3`… before the extension if it is in use. Only the whole hash in the database tells
 * that a stored object has the same content.
 */
export async function claim(db: Db, claimant: Claimant, wanted: Wanted): Promise<Claim> {
  const same = wanted.dedupe ? await findContent(db, wanted, () => true) : undefined
  return same ?? (await insert(db, claimant, wanted)) ?? claimTaken(db, claimant, wanted)
}

/** Claims an object that the database does not have. @returns undefined if it has it */
async function insert(db: Db, claimant: Claimant, wanted: Wanted): Promise<Claim | undefined> {
  const { destination, location, key, sha256 } = wanted
  const inserted = await db.run(
    sql`insert into objects (name, destination, location, key, sha256, state, holder, is_new, attempts, following)
      values (${objectName(location, key)}, ${destination}, ${location}, ${key}, ${sha256}, 'storing', ${claimant.id}, 0, 0, 2)
      on conflict (name) do nothing`,
  )
  return inserted > 0 ? mine(claimant, wanted, mayExist(wanted)) : undefined
}

/** Claims an object whose key is in use, or one with a number. */
async function claimTaken(db: Db, claimant: Claimant, wanted: Wanted): Promise<Claim> {
  const { location } = wanted
  let here = wanted
  for (let number = 1; ; ) {
    const [row] = await db.all<ObjectRow>(
      sql`select name, key, sha256, state, holder, is_new, following from objects
        where name = ${objectName(location, here.key)}${db.forUpdate}`,
    )
    if (row) {
      const claimed = await claimKnown(db, claimant, here, row)
      if (claimed) return claimed
      if (here.onConflict === 'error') return { is: 'conflict', key: here.key }
      const same = number === 1 ? await findNumbered(db, claimant, wanted) : undefined
      if (same) return same
      number = await nextNumber(db, objectName(location, wanted.key), number, row)
      // Only what has the wanted key may be replaced.
      here = { ...wanted, key: numbered(wanted.key, number), onConflict: 'rename' }
    }
    // Without a row, it was removed in between.
    const inserted = await insert(db, claimant, here)
    if (inserted) return inserted
  }
}

/** Claims an object that the database has. @returns undefined if it is of another content, so that a number is needed */
async function claimKnown(
  db: Db,
  claimant: Claimant,
  wanted: Wanted,
  row: ObjectRow,
): Promise<Claim | undefined> {
  const { sha256, onConflict, isContentKey, expiresAt } = wanted
  const { name, key, state } = row
  const isSame = row.sha256 === sha256 && key === wanted.key
  // A part of a hash in the key does not tell that the content is the same.
  const isCollision = isContentKey && row.sha256 !== '' && row.sha256 !== sha256
  const replaces = onConflict === 'replace' && !isCollision
  if (state === 'stored') {
    const file = isSame && !replaces ? await latestFile(db, wanted) : undefined
    if (file) {
      await extend(db, name, expiresAt)
      return { is: 'same', name, key, ...file }
    }
    // Without a file, the history of the same content was deleted, so that its URL is not known any more.
    return replaces || (isSame && onConflict === 'rename') ? take(db, claimant, wanted, false) : undefined
  }
  const mayWait = state === 'removing' || isSame
  if (claimant.claimed.has(name) || !(mayWait || replaces)) return undefined
  if (await isHeld(db, row.holder)) return mayWait ? { is: 'wait' } : undefined
  // Its process has ended. Other content does not get the key, because a process may only have paused.
  const isOther = key !== wanted.key
  const isUnknown = (state === 'storing' || isOther) && mayExist(wanted, isOther ? undefined : row)
  return take(db, claimant, wanted, isUnknown)
}

/** The next number is known, so that the 2000th file of a name costs as much as the second. */
async function nextNumber(db: Db, first: string, number: number, row: ObjectRow): Promise<number> {
  const [base] =
    number === 1
      ? [row]
      : await db.all<ObjectRow>(sql`select following from objects where name = ${first}${db.forUpdate}`)
  const next = Math.max(number + 1, base?.following ?? 2)
  await db.run(sql`update objects set following = ${next + 1} where name = ${first}`)
  return next
}

function mine({ claimed }: Claimant, { location, key }: Wanted, isUnknown: boolean): Claim {
  const name = objectName(location, key)
  claimed.add(name)
  return { is: 'mine', name, key, mayExist: isUnknown }
}

/** Whether something that the server did not store may be at a key, and matters. */
function mayExist({ onConflict, isContentKey, expiresAt }: Wanted, row?: Pick<ObjectRow, 'is_new'>): boolean {
  return !isContentKey && row?.is_new !== 1 && (onConflict !== 'replace' || expiresAt !== null)
}

async function take(db: Db, claimant: Claimant, wanted: Wanted, isUnknown: boolean): Promise<Claim> {
  const { destination, location, key, sha256 } = wanted
  await db.run(
    sql`update objects set state = 'storing', holder = ${claimant.id}, sha256 = ${sha256}, key = ${key},
      destination = ${destination}, location = ${location}, retry_at = null, problem = null, attempts = 0,
      expires_at = case when stored_at is null then null else expires_at end where name = ${objectName(location, key)}`,
  )
  return mine(claimant, wanted, isUnknown)
}

/** An object with a number and the same content: a stored one, or one that a dead process has left. */
async function findNumbered(db: Db, claimant: Claimant, wanted: Wanted): Promise<Claim | undefined> {
  const same = await findContent(db, wanted, key => isNumbered(key, wanted.key))
  return same ?? takeLeft(db, claimant, wanted)
}

/** Takes an object with a number that a process which has ended was storing with the same content: most likely for the same request. */
async function takeLeft(db: Db, claimant: Claimant, wanted: Wanted): Promise<Claim | undefined> {
  const { destination, location, sha256 } = wanted
  const rows = await db.all<ObjectRow>(
    sql`select key, is_new, holder from objects where holder is not null and state = 'storing'
      and destination = ${destination} and location = ${location} and sha256 = ${sha256}${db.forUpdate}`,
  )
  for (const row of rows) {
    const { key, holder } = row
    if (!isNumbered(key, wanted.key) || (await isHeld(db, holder))) continue
    return take(db, claimant, { ...wanted, key }, mayExist(wanted, row))
  }
  return undefined
}

/** Takes an object with the same content that has vanished from its destination, to store it again. */
export async function retake(
  db: Db,
  claimant: Claimant,
  { name, key }: Extract<Claim, { is: 'same' }>,
  wanted: Wanted,
): Promise<Claim> {
  const changed = await db.run(
    sql`update objects set state = 'storing', holder = ${claimant.id}
      where name = ${name} and state = 'stored' and sha256 = ${wanted.sha256}`,
  )
  return changed > 0 ? mine(claimant, { ...wanted, key }, false) : { is: 'wait' }
}

/** Maximum number of files with the same content to check, latest first. */
const MOST_SAME = 100

/** A stored object of the destination with the same content, under a key that fits. */
async function findContent(
  db: Db,
  { destination, location, sha256, expiresAt }: Wanted,
  fits: (key: string) => boolean,
): Promise<Claim | undefined> {
  const rows = await db.all<{ name: string; key: string; url: string; delete_url: string | null }>(
    sql`select objects.name, objects.key, files.url, files.delete_url from files join objects on objects.name = files.object
      where files.sha256 = ${sha256} and files.destination = ${destination} and files.location = ${location}
      and files.removed_at is null and objects.state = 'stored' and objects.sha256 = ${sha256}
      order by files.upload desc limit ${MOST_SAME}`,
  )
  const found = rows.find(row => fits(row.key))
  if (!found) return undefined
  await extend(db, found.name, expiresAt)
  const { name, key, url, delete_url } = found
  return { is: 'same', name, key, url, deleteUrl: delete_url ?? undefined }
}

/** The latest file of an object with this content. With `error`, only if all uploads that have stored it have failed: then no client has its URL. */
async function latestFile(
  db: Db,
  { location, key, sha256, onConflict }: Wanted,
): Promise<{ url: string; deleteUrl: string | undefined } | undefined> {
  const files = await db.all<{ url: string; delete_url: string | null; state: string | null }>(
    sql`select url, delete_url, state from files left join uploads on uploads.id = files.upload
      where object = ${objectName(location, key)} and sha256 = ${sha256} and removed_at is null
      order by upload desc limit ${onConflict === 'error' ? MOST_SAME : 1}`,
  )
  const [file] = files
  if (!file || (onConflict === 'error' && files.some(({ state }) => state !== 'failed'))) return undefined
  return { url: file.url, deleteUrl: file.delete_url ?? undefined }
}

/** A stored object expires with the latest of its uploads. The sweeper must not remove it before this upload ends. */
async function extend(db: Db, name: string, end: End): Promise<void> {
  await db.run(
    sql`update objects set expires_at = ${end}
      where name = ${name} and expires_at is not null and (cast(${end} as bigint) is null or expires_at < ${end})`,
  )
}

/**
 * Writes what the destination has at a claimed key. `nothing`: if the upload does not end, its object can be removed. `foreign`:
 * something that the server did not store. It stays known, and is never removed, also if the upload replaces it (`replaced`).
 */
export async function noteLook(
  db: Db,
  { id }: Claimant,
  name: string,
  found: 'nothing' | 'foreign' | 'replaced',
): Promise<void> {
  const change = {
    nothing: sql`is_new = 1`,
    foreign: sql`state = 'stored', holder = null, sha256 = '', stored_at = ${db.time}, expires_at = null`,
    replaced: sql`stored_at = coalesce(stored_at, ${db.time})`,
  }[found]
  await db.run(sql`update objects set ${change} where name = ${name} and holder = ${id}`)
}

/** `image.png` → `image-2.png`. */
function numbered(key: string, number: number): string {
  const slash = key.lastIndexOf('/') + 1
  const [base, extension] = splitExtension(key.slice(slash))
  return `${key.slice(0, slash)}${base}-${number}${extension}`
}

/** Whether a key is another one with a number. */
const isNumbered = (key: string, wanted: string): boolean => key.replace(/-\d+(\.[^./]*)?$/, '$1') === wanted
