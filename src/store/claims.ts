import { splitExtension } from '../payload/file-name.ts'
import { type End, isHeld, objectName } from './objects.ts'
import { type Db, List, Rows, sql, type Value } from './sql.ts'

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

/** What an upload may do with an object. */
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
  /** Another file of the same upload stores the same content there. */
  | { readonly is: 'twin'; readonly name: string; readonly key: string }
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
  /** An earlier upload of the same request that has ended and stored nothing. The objects that it had claimed can be used. */
  takesOver?: string | undefined
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

/** Claims objects for the files of an upload, in order. Most names are new, so all are inserted with one statement. */
export async function claimAll(
  db: Db,
  claimant: Claimant,
  wanted: readonly Wanted[],
): Promise<readonly Claim[]> {
  const claims: Claim[] = []
  const first = new Map<string, Wanted>()
  for (const one of wanted) {
    const name = objectName(one.location, one.key)
    if (!one.dedupe && !claimant.takesOver && !first.has(name)) first.set(name, one)
  }
  const isNew = new Set<string>()
  if (first.size > 0) {
    // In the same order everywhere, so that two uploads do not block each other.
    const names = [...first.keys()].sort()
    const rows = names.map(name => newRow(name, first.get(name) as Wanted, claimant.id))
    const inserted = await db.run(insertion(rows))
    const known =
      inserted === names.length
        ? []
        : await db.all<{ name: string }>(
            sql`select name from objects where name in (${new List(names)}) and (holder is null or holder <> ${claimant.id})
              order by name${db.forUpdate}`,
          )
    const others = new Set(known.map(({ name }) => name))
    for (const name of names) if (!others.has(name)) isNew.add(name)
  }
  for (const one of wanted) {
    const name = objectName(one.location, one.key)
    // A file before it may have got the name as its number.
    const isMine = first.get(name) === one && isNew.has(name) && !claimant.claimed.has(name)
    claims.push(isMine ? mine(claimant, name, one.key, mayExist(one)) : await claim(db, claimant, one))
  }
  return claims
}

/**
 * Claims the wanted key, or one with `-2`, `-3`… before the extension if it is in use. Only the whole hash in the database tells
 * that a stored object has the same content.
 */
export async function claim(db: Db, claimant: Claimant, wanted: Wanted): Promise<Claim> {
  const { location, sha256, expiresAt } = wanted
  const claimed = claimant.takesOver && (await findClaimed(db, claimant, claimant.takesOver, wanted))
  if (claimed) return claimed
  if (wanted.dedupe) {
    const same = await findContent(db, wanted, () => true)
    if (same) return same
  }
  const first = objectName(location, wanted.key)
  for (let number = 1; ; ) {
    const key = number === 1 ? wanted.key : numbered(wanted.key, number)
    const name = objectName(location, key)
    // Only what has the wanted key may be replaced.
    const here: Wanted = number === 1 ? wanted : { ...wanted, onConflict: 'rename' }
    const inserted = await db.run(insertion([newRow(name, { ...wanted, key }, claimant.id)]))
    if (inserted > 0) return mine(claimant, name, key, mayExist(here))
    const [row] = await db.all<ObjectRow>(
      sql`select name, key, sha256, state, holder, is_new, following from objects where name = ${name}${db.forUpdate}`,
    )
    if (!row) continue // it was removed in between
    const isSame = row.sha256 === sha256 && row.key === key
    // A part of a hash in the key does not tell that the content is the same.
    const isCollision = wanted.isContentKey && row.sha256 !== '' && row.sha256 !== sha256
    const onConflict = isCollision && here.onConflict === 'replace' ? 'rename' : here.onConflict
    if (row.state === 'stored') {
      const file =
        isSame && onConflict !== 'replace' ? await latestFile(db, name, sha256, onConflict) : undefined
      if (file) {
        await extend(db, name, expiresAt)
        return { is: 'same', name, key, ...file }
      }
      // The history of the same content was deleted, so that its URL is not known any more.
      if ((isSame && onConflict === 'rename') || onConflict === 'replace')
        return take(db, claimant, name, key, here, false)
    } else if (claimant.claimed.has(name)) {
      if (isSame) return { is: 'twin', name, key }
    } else if (row.holder === claimant.id) {
      // Another file of the upload has claimed it and could not store it.
      if (isSame) return mine(claimant, name, key, mayExist(here, row))
    } else if (row.state === 'removing' || isSame || onConflict === 'replace') {
      if (!(await isHeld(db, row.holder))) {
        // Its process has ended. Other content does not get the key, because a process may only have paused.
        const isOther = row.key !== key
        const isUnknown = (row.state === 'storing' || isOther) && mayExist(here, isOther ? undefined : row)
        return take(db, claimant, name, key, here, isUnknown)
      }
      if (row.state === 'removing' || isSame) return { is: 'wait' }
    }
    if (onConflict === 'error') return { is: 'conflict', key }
    if (number === 1 && onConflict === 'rename') {
      const same = await findContent(db, wanted, other => isNumbered(other, wanted.key))
      if (same) return same
    }
    number = await nextNumber(db, first, number, row)
  }
}

/** Takes the object that an earlier attempt at the same request has claimed for a file. */
async function findClaimed(
  db: Db,
  claimant: Claimant,
  earlier: string,
  wanted: Wanted,
): Promise<Claim | undefined> {
  const { destination, location, sha256 } = wanted
  const rows = await db.all<ObjectRow>(
    sql`select name, key, is_new from objects where holder = ${earlier} and state = 'storing' and destination = ${destination}
      and location = ${location} and sha256 = ${sha256}${db.forUpdate}`,
  )
  const isFit = ({ key }: ObjectRow) =>
    key === wanted.key || (wanted.onConflict === 'rename' && isNumbered(key, wanted.key))
  const row = rows.find(isFit)
  if (!row) return undefined
  await db.run(sql`update objects set holder = ${claimant.id} where name = ${row.name}`)
  return mine(claimant, row.name, row.key, mayExist(wanted, row))
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

function mine(claimant: Claimant, name: string, key: string, isUnknown: boolean): Claim {
  claimant.claimed.add(name)
  return { is: 'mine', name, key, mayExist: isUnknown }
}

/** Whether something that the server did not store may be at a key, and matters. */
function mayExist({ onConflict, isContentKey, expiresAt }: Wanted, row?: Pick<ObjectRow, 'is_new'>): boolean {
  return !isContentKey && row?.is_new !== 1 && (onConflict !== 'replace' || expiresAt !== null)
}

/** Inserts objects that are not known. */
const insertion = (rows: readonly (readonly Value[])[]) =>
  sql`insert into objects (name, destination, location, key, sha256, state, holder, is_new, attempts, following)
    values ${new Rows(rows)} on conflict (name) do nothing`

const newRow = (name: string, { destination, location, key, sha256 }: Wanted, holder: string) => [
  ...[name, destination, location, key, sha256, 'storing', holder],
  ...[0, 0, 2],
]

async function take(
  db: Db,
  claimant: Claimant,
  name: string,
  key: string,
  { destination, location, sha256 }: Wanted,
  isUnknown: boolean,
): Promise<Claim> {
  await db.run(
    sql`update objects set state = 'storing', holder = ${claimant.id}, sha256 = ${sha256}, key = ${key},
      destination = ${destination}, location = ${location}, retry_at = null, problem = null, attempts = 0,
      expires_at = case when stored_at is null then null else expires_at end where name = ${name}`,
  )
  return mine(claimant, name, key, isUnknown)
}

/** Takes a stored object that has vanished from its destination, to store it again. @returns false if it is not stored any more */
export async function retake(db: Db, claimant: Claimant, name: string, { sha256 }: Wanted): Promise<boolean> {
  const changed = await db.run(
    sql`update objects set state = 'storing', holder = ${claimant.id}
      where name = ${name} and state = 'stored' and sha256 = ${sha256}`,
  )
  if (changed > 0) claimant.claimed.add(name)
  return changed > 0
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
  name: string,
  sha256: string,
  onConflict: OnConflict,
): Promise<{ url: string; deleteUrl: string | undefined } | undefined> {
  const files = await db.all<{ url: string; delete_url: string | null; state: string | null }>(
    sql`select url, delete_url, state from files left join uploads on uploads.id = files.upload
      where object = ${name} and sha256 = ${sha256} and removed_at is null order by upload desc limit ${onConflict === 'error' ? 100 : 1}`,
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

/** Nothing was at a claimed key. If the upload does not end, its object can be removed. */
export async function noteAbsent(db: Db, claimant: Claimant, name: string): Promise<void> {
  await db.run(sql`update objects set is_new = 1 where name = ${name} and holder = ${claimant.id}`)
}

/** Something that the server did not store is at a claimed key. It stays known, and is never removed. */
export async function noteForeign(db: Db, { id, claimed }: Claimant, name: string): Promise<void> {
  claimed.delete(name)
  await db.run(
    sql`update objects set state = 'stored', holder = null, sha256 = '', stored_at = ${db.time}, expires_at = null
      where name = ${name} and holder = ${id}`,
  )
}

/** The same for an object that the upload replaces. */
export async function noteReplaced(db: Db, { id }: Claimant, name: string): Promise<void> {
  await db.run(
    sql`update objects set stored_at = ${db.time} where name = ${name} and holder = ${id} and stored_at is null`,
  )
}

/** `image.png` → `image-2.png`. */
function numbered(key: string, number: number): string {
  const slash = key.lastIndexOf('/') + 1
  const [base, extension] = splitExtension(key.slice(slash))
  return `${key.slice(0, slash)}${base}-${number}${extension}`
}

/** Whether a key is another one with a number. */
const isNumbered = (key: string, wanted: string): boolean => key.replace(/-\d+(\.[^./]*)?$/, '$1') === wanted
