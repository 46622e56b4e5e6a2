import { isAlive } from './owners.ts'
import { type Db, List, sql } from './sql.ts'

/** When something expires, milliseconds since the epoch. Null: never. */
export type End = number | null

/**
 * The name of an object, by which all destinations that reach it know it. Object keys that differ only in case or Unicode form
 * have the same one, because they are one file on some disks.
 */
export const objectName = (location: string, key: string): string =>
  location + key.normalize('NFC').toLowerCase()

/** Whether the holder of an object, an upload or a process, still works on it. */
export async function isHeld(db: Db, holder: string | null): Promise<boolean> {
  if (holder === null) return false
  const [upload] = await db.all<{ owner: string; ended_at: number | null }>(
    sql`select owner, ended_at from uploads where id = ${holder}`,
  )
  if (!upload) return isAlive(db, holder)
  return upload.ended_at === null && isAlive(db, upload.owner)
}

/** The holders that still work on objects in a state. Never empty, because a list in a query must not be. */
export async function heldAmong(db: Db, state: 'storing' | 'removing'): Promise<string[]> {
  const holders = await db.all<{ holder: string }>(
    sql`select distinct holder from objects where holder is not null and state = ${state}`,
  )
  const held = ['-'] // no holder has this name
  for (const { holder } of holders) if (await isHeld(db, holder)) held.push(holder)
  return held
}

/** An object that an upload has stored. */
export interface StoredObject {
  readonly destination: string
  readonly location: string
  readonly key: string
  readonly sha256: string
  readonly expiresAt?: number | undefined
}

/**
 * Writes that an object is stored. It expires with the latest of its uploads.
 *
 * @param holder the upload, or the process that has taken over its claims
 * @returns when it expires. Undefined if it was removed, or has other content now
 */
export async function settle(
  db: Db,
  { destination, location, key, sha256, expiresAt }: StoredObject,
  holder: string,
): Promise<End | undefined> {
  const end = expiresAt ?? null
  const [settled] = await db.all<{ expires_at: End }>(
    sql`update objects set
        state = 'stored', holder = null, sha256 = ${sha256}, key = ${key}, destination = ${destination}, location = ${location},
        is_new = 0, stored_at = ${db.time}, problem = null, attempts = 0, retry_at = null,
        expires_at = case
          when cast(${end} as bigint) is null or (stored_at is not null and expires_at is null) then null
          when stored_at is null or expires_at < ${end} then ${end}
          else expires_at end
      where name = ${objectName(location, key)} and sha256 = ${sha256} and (holder = ${holder} or state = 'stored')
      returning expires_at`,
  )
  return settled?.expires_at
}

/**
 * Frees what an upload has claimed and not stored.
 *
 * @param left names of objects that a transfer may still write: they pass to the process
 */
export async function free(db: Db, upload: string, owner: string, left: readonly string[]): Promise<void> {
  if (left.length > 0)
    await db.run(
      sql`update objects set holder = ${owner} where name in (${new List(left)}) and holder = ${upload}`,
    )
  await db.run(sql`delete from objects where holder = ${upload} and state = 'storing' and stored_at is null`)
  await db.run(
    sql`update objects set state = 'stored', holder = null, sha256 = '' where holder = ${upload} and state = 'storing'`,
  )
}

/** An object whose transfer has no known outcome: a process has ended, or a destination has not responded. */
export interface OpenObject {
  readonly name: string
  readonly destination: string
  readonly location: string
  readonly key: string
}

/** Takes the objects that processes which have ended were storing, to find out what became of them. */
export async function takeOpen(
  db: Db,
  owner: string,
  among: readonly string[],
  limit: number,
): Promise<OpenObject[]> {
  const held = await heldAmong(db, 'storing')
  const rows = await db.all<OpenObject & { readonly holder: string }>(
    sql`select name, destination, location, key, holder from objects
      where holder is not null and holder <> ${owner} and holder not in (${new List(held)}) and state = 'storing'
      and destination in (${new List(among)}) and (holder <> ${NOBODY} or retry_at <= ${db.time}) limit ${limit}${db.forUpdateSkipLocked}`,
  )
  const open: OpenObject[] = []
  for (const { holder, ...object } of rows) if (!(await isHeld(db, holder))) open.push(object)
  if (open.length > 0)
    await db.run(
      sql`update objects set holder = ${owner} where name in (${new List(open.map(({ name }) => name))})`,
    )
  return open
}

/** Response of a destination about an object whose transfer had no known outcome. */
export type Found =
  | 'nothing'
  | 'something'
  /** Something that can't be removed there. */
  | 'permanent'
  /** The destination did not respond. It is asked again later. */
  | 'unasked'

/** The holder of an object that no process works on. */
const NOBODY = ''

const ASKED_AGAIN_MS = 10 * 60_000

/**
 * Writes what became of an object that this process holds, because a transfer may have written it. If only that transfer can
 * have written what is there, it expires now, so that the sweeper removes it. Everything else stays, and is never removed. Until
 * then, the same content may be stored there again.
 */
export async function settleOpen(db: Db, owner: string, name: string, found: Found): Promise<void> {
  const held = sql`name = ${name} and holder = ${owner} and state = 'storing'`
  if (found === 'nothing') await db.run(sql`delete from objects where ${held} and stored_at is null`)
  // What was there before may have been replaced.
  await db.run(
    sql`update objects set state = 'stored', holder = null, sha256 = '' where ${held} and stored_at is not null`,
  )
  const end = found === 'something' ? db.time : null
  await db.run(
    sql`update objects set holder = ${NOBODY}, retry_at = ${found === 'unasked' ? sql`${db.time} + ${ASKED_AGAIN_MS}` : null},
      expires_at = case when is_new = 1 then cast(${end} as bigint) else null end where ${held}`,
  )
}
