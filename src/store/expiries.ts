import { setImmediate as nextTurn } from 'node:timers/promises'
import { type RawBuilder, type Selectable, sql } from '../packages/kysely.ts'
import type { StoreAccess } from './access.ts'
import {
  type End,
  type Expiry,
  type ExpiryStore,
  foldKey,
  identify,
  type LockedObject,
  type ObjectId,
  type ObjectName,
} from './expiry-contract.ts'
import { entriesOf, isOf } from './history.ts'
import { addLocks, findLocked, unlock } from './locks.ts'
import type { Database, Tables } from './tables.ts'

/** Number of objects, and of their entries, that one transaction marks. */
const NOTED_AT_ONCE = 32
const MARKED_AT_ONCE = 200
/** Pause before a locked object is checked again, milliseconds. */
const LOCKED_PAUSE_MS = 1000

/** The expiry of files. */
export function createExpiryStore(access: StoreAccess): ExpiryStore {
  const { read, write, index } = access
  return {
    async takeDue(wanted) {
      if (wanted.among.length === 0) return { objects: [], isAll: true }
      for (const which of ['keys', 'objects', 'due'] as const) await index(which)
      return write(db => takeDue(db, wanted, access))
    },

    async noteRemoved(objects, now) {
      for (let left = objects; left.length > 0; await nextTurn())
        left = left.slice(await write(db => markSome(db, left.slice(0, NOTED_AT_ONCE), now)))
    },

    postponeRemoval: ({ destination, key, object, holder }, nextAttemptAt, problem) =>
      write(async db => {
        await db
          .updateTable('expiries')
          .set(eb => ({ next_attempt_at: nextAttemptAt, attempts: eb('attempts', '+', 1), problem }))
          .where('destination', '=', destination)
          .where('key', '=', key)
          .execute()
        await unlock(db, holder, object)
      }),

    async countDue(now, among, most) {
      await index('due')
      return read(db => countDue(db, now, among, most))
    },

    overdue: (now, among, limit) =>
      read(async db => {
        const due = db.selectFrom('expiries').selectAll().where('due_at', '<=', now)
        const meant = among === undefined ? due : due.where(isOneOf(among))
        const rows = await meant.orderBy('due_at').limit(limit).execute()
        return rows.map(toExpiry)
      }),

    async promised(objects) {
      for (const which of ['keys', 'objects'] as const) await index(which)
      return read(async db => {
        const ends: (End | undefined)[] = []
        for (const object of objects) ends.push((await readPromise(db, object)).end)
        return ends
      })
    },

    expiring: among =>
      read(async db => {
        const found: string[] = []
        for (const destination of among) {
          const query = db.selectFrom('expiries').select('key').where('destination', '=', destination)
          if (await query.limit(1).executeTakeFirst()) found.push(destination)
        }
        return found
      }),
  }
}

type Row = Selectable<Tables['expiries']>
type Known = Row & ObjectId
type Wanted = Parameters<ExpiryStore['takeDue']>[0]

async function takeDue(
  db: Database,
  { among, locations, holder, owner, limit, longestPauseMs, now: mine }: Wanted,
  { now: nowOf, lockNames }: StoreAccess,
): ReturnType<ExpiryStore['takeDue']> {
  const now = await nowOf(db, mine)
  const due = await selectDue(db, among, now, limit, longestPauseMs)
  if (due.length === 0) return { objects: [], isAll: true }
  const known = due.map(row => ({ ...row, ...identify(row, locations) }))
  const free = await withoutLocked(db, known, lockNames, now)
  const found = await withoutPromised(db, free, now, longestPauseMs)
  const objects = found.map(object => ({ ...object, holder }))
  const locks = objects.map(({ object }) => ({
    name: foldKey(object),
    content: holder,
    holder,
    owner,
    held_at: now,
  }))
  if (locks.length > 0) await addLocks(db, locks)
  return { objects, isAll: due.length < limit }
}

async function selectDue(
  db: Database,
  among: readonly string[],
  now: number,
  limit: number,
  longestPauseMs: number,
): Promise<Row[]> {
  const select = () => db.selectFrom('expiries').selectAll()
  const due: Row[] = []
  // One query for each destination, so that an index finds the rows, and rows of other destinations are not read.
  for (const destination of among) {
    if (due.length === limit) break
    const further = select()
      .where('destination', '=', destination)
      .where('next_attempt_at', '<=', now)
      .orderBy('next_attempt_at')
      .limit(limit - due.length)
    due.push(...(await further.execute()))
  }
  if (due.length === limit) return due
  const postponed = await select()
    .where(isOneOf(among))
    .where(sql<boolean>`attempts > 0`)
    .where('due_at', '<=', now)
    .where('next_attempt_at', '>', now + longestPauseMs)
    .limit(limit - due.length)
    .execute()
  return [...due, ...postponed]
}

/** As an expression, the destination keeps databases from using the index of the primary key, which has no times. */
const isOneOf = (among: readonly string[]) =>
  among.length === 0 ? sql<boolean>`1 = 0` : sql<boolean>`destination || '' in (${sql.join([...among])})`

/** The objects that are not locked. The others are checked again soon. */
async function withoutLocked(
  db: Database,
  due: readonly Known[],
  lockNames: StoreAccess['lockNames'],
  now: number,
): Promise<Known[]> {
  const nameOfRow = ({ object }: Known) => foldKey(object)
  const taken = await findLocked(db, due.map(nameOfRow), lockNames)
  const free: Known[] = []
  for (const row of due) {
    const name = nameOfRow(row)
    if (taken.has(name)) await postpone(db, row, { next_attempt_at: now + LOCKED_PAUSE_MS })
    else free.push(row)
    taken.add(name)
  }
  return free
}

/** The objects that have expired for all uploads of them. The others are due when the last upload expires, or never. */
async function withoutPromised(
  db: Database,
  due: readonly Known[],
  now: number,
  longestPauseMs: number,
): Promise<(Expiry & ObjectId)[]> {
  const free: (Expiry & ObjectId)[] = []
  for (const row of due) {
    const { end, isHere, elsewhere } = await readPromise(db, row)
    // An object that is not in the history is never removed.
    if (end === undefined || end === 'never') await deleteExpiry(db, row)
    else if (end > now) await postpone(db, row, { due_at: end, next_attempt_at: end })
    else if (isHere) free.push({ ...toExpiry(row), object: row.object, aliases: row.aliases })
    else {
      const problem = `it was stored at ${elsewhere}, which is not where ${row.destination} leads now`
      await postpone(db, row, { attempts: row.attempts + 1, problem, next_attempt_at: now + longestPauseMs })
    }
  }
  return free
}

interface Promised {
  /** The latest expiry. Undefined if the object is not in the history. */
  readonly end: End | undefined
  /** Whether an entry has the location that the destination has now. */
  readonly isHere: boolean
  /** Another location, where the same destination has stored it before. */
  readonly elsewhere: string | null
}

async function readPromise(db: Database, object: ObjectId): Promise<Promised> {
  // Entries with another location of the destination count too, because one location may have several spellings.
  const entries = entriesOf(sql`expires_at, place, key`, object, false)
  const found = sql<{ until: number | null; forever: number; here: number; elsewhere: string | null }>`
    select max(expires_at) as until, max(case when expires_at is null then 1 else 0 end) as forever,
    max(case when place is null or place || key = ${object.object} then 1 else 0 end) as here,
    max(place) as elsewhere from (${entries}) as entries`
  const [row] = (await found.execute(db)).rows
  const until = row?.until ?? undefined
  return {
    end: row?.forever ? 'never' : until === undefined ? undefined : Number(until),
    isHere: Boolean(row?.here),
    elsewhere: row?.elsewhere ?? null,
  }
}

/** Marks a bounded part of the entries as removed, and unlocks the objects that have no more. @returns their number */
async function markSome(db: Database, objects: readonly LockedObject[], now: number): Promise<number> {
  let left = MARKED_AT_ONCE
  let done = 0
  for (const object of objects) {
    const part = sql`update history set removed_at = ${now} where ${isOf(object, left)}`
    left -= Number((await part.execute(db)).numAffectedRows ?? 0n)
    if (left === 0) break
    done++
  }
  const whole = objects.slice(0, done)
  if (done > 0) {
    const names = whole.flatMap(({ aliases }) => aliases.map(one => sql`(${one.destination}, ${one.key})`))
    await sql`delete from expiries where (destination, key) in (values ${sql.join(names)})`.execute(db)
    await db
      .deleteFrom('key_holds')
      .where('holder', 'in', [...new Set(whole.map(({ holder }) => holder))])
      .where(
        'name',
        'in',
        whole.map(({ object }) => foldKey(object)),
      )
      .execute()
  }
  return done
}

async function countDue(db: Database, now: number, among: readonly string[], most: number): Promise<number> {
  let count = 0
  const add = async (condition: RawBuilder<unknown>) => {
    const rows = sql`select 1 from expiries where ${condition} limit ${most}`
    const counted = await sql<{ count: number }>`select count(*) as count from (${rows}) as few`.execute(db)
    count += Number(counted.rows[0]?.count)
  }
  for (const destination of among) await add(sql`destination = ${destination} and next_attempt_at <= ${now}`)
  await add(sql`attempts > 0 and next_attempt_at > ${now} and ${isOneOf(among)}`)
  return Math.min(count, most)
}

async function postpone(db: Database, { destination, key }: Row, changes: Partial<Row>): Promise<void> {
  await db
    .updateTable('expiries')
    .set(changes)
    .where('destination', '=', destination)
    .where('key', '=', key)
    .execute()
}

async function deleteExpiry(db: Database, { destination, key }: ObjectName): Promise<void> {
  await db.deleteFrom('expiries').where('destination', '=', destination).where('key', '=', key).execute()
}

function toExpiry({ destination, key, due_at, attempts, problem }: Row): Expiry {
  return { destination, key, dueAt: due_at, attempts, problem: problem ?? undefined }
}
