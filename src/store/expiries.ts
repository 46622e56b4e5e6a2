import { randomUUID } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type RawBuilder, type Selectable, sql } from '../packages/kysely.ts'
import type { Access } from './access.ts'
import { type Expiry, type ExpiryStore, nameOf, type ObjectName } from './expiry-contract.ts'
import type { Database, Tables } from './tables.ts'

/** Entries that one transaction marks. */
const MARKED_AT_ONCE = 200
/** Before an object is looked at again that somebody else is at, milliseconds. */
const HELD_PAUSE_MS = 1000

/** The files of a store that go again. @param holders jobs that hold keys, which their delivery gives back */
export function createExpiryStore(
  { read, write, index, lockNames, now: nowOf }: Access,
  holders: Set<string>,
): ExpiryStore {
  return {
    async holdKey({ destination, key, content, holder, owner, now }) {
      const name = nameOf(key)
      const other = await write(async db => {
        await lockNames(db, [`${destination}/${name}`])
        const found = await db
          .selectFrom('key_holds')
          .select(['content', 'holder', 'owner'])
          .where('name', '=', name)
          .where('destination', '=', destination)
          .where('content', '<>', content)
          .limit(1)
          .executeTakeFirst()
        if (found) return found
        await db
          .insertInto('key_holds')
          .values({ destination, name, content, holder, owner, held_at: now })
          .onConflict(conflict => conflict.columns(['holder', 'destination', 'name']).doNothing())
          .execute()
        return undefined
      })
      if (!other) holders.add(holder)
      return other
    },

    async releaseKeys(holder) {
      await write(db => release(db, holder))
      holders.delete(holder)
    },

    async takeDue({ among, owner, now: mine, limit, longestPauseMs }) {
      if (among.length === 0) return { objects: [], isAll: true }
      await index('keys')
      await index('due')
      return write(async db => {
        const now = await nowOf(db, mine)
        const due = await selectDue(db, among, now, limit, longestPauseMs)
        if (due.length === 0) return { objects: [], isAll: true }
        const free = await withoutHeld(db, due, lockNames, now)
        const objects = await withoutPromised(db, free, now)
        const held = objects.map(object => ({ ...object, holder: randomUUID() }))
        if (held.length > 0) {
          const rows = held.map(({ destination, key, holder }) => ({
            ...{ destination, name: nameOf(key), content: holder, holder, owner, held_at: now },
          }))
          await db.insertInto('key_holds').values(rows).execute()
        }
        return { objects: held, isAll: due.length < limit }
      })
    },

    async noteRemoved(object, now) {
      for (let isMore = true; isMore; ) {
        isMore = await write(async db => {
          // The key of the history, so that only these rows are looked at.
          const part = sql`update history set removed_at = ${now} where destination = ${object.destination}
            and (job_id, position) in (select job_id, position from history where ${isOf(object)}
            and removed_at is null limit ${MARKED_AT_ONCE})`
          const { numAffectedRows = 0n } = await part.execute(db)
          if (numAffectedRows >= MARKED_AT_ONCE) return true
          await forget(db, object)
          await release(db, object.holder)
          return false
        })
        await nextTurn()
      }
    },

    postponeRemoval: ({ destination, key, holder }, nextAttemptAt, problem) =>
      write(async db => {
        await db
          .updateTable('expiries')
          .set(eb => ({ next_attempt_at: nextAttemptAt, attempts: eb('attempts', '+', 1), problem }))
          .where('destination', '=', destination)
          .where('key', '=', key)
          .execute()
        await release(db, holder)
      }),

    async countDue(now, among, most) {
      await index('due')
      return read(async db => {
        let count = 0
        const add = async (condition: RawBuilder<unknown>) => {
          const rows = sql`select 1 from expiries where ${condition} limit ${most}`
          const counted = await sql<{
            count: number
          }>`select count(*) as count from (${rows}) as few`.execute(db)
          count += Number(counted.rows[0]?.count)
        }
        for (const destination of among)
          await add(sql`destination = ${destination} and next_attempt_at <= ${now}`)
        await add(sql`attempts > 0 and next_attempt_at > ${now} and ${isOneOf(among)}`)
        return Math.min(count, most)
      })
    },

    overdue: (now, among, limit) =>
      read(async db => {
        const due = db.selectFrom('expiries').selectAll().where('due_at', '<=', now)
        const meant = among === undefined ? due : due.where(isOneOf(among))
        const rows = await meant.orderBy('due_at').limit(limit).execute()
        return rows.map(toExpiry)
      }),

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

async function selectDue(
  db: Database,
  among: readonly string[],
  now: number,
  limit: number,
  longestPauseMs: number,
): Promise<Row[]> {
  const select = () => db.selectFrom('expiries').selectAll()
  const due: Row[] = []
  // One by one: what others have left undone is not gone through each time.
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

/** As an expression the destination keeps databases from looking by the key, whose index knows no times. */
const isOneOf = (among: readonly string[]) =>
  among.length === 0 ? sql<boolean>`1 = 0` : sql<boolean>`destination || '' in (${sql.join([...among])})`

/** Those that nobody is at. The others are looked at again soon. */
async function withoutHeld(
  db: Database,
  due: readonly Row[],
  lockNames: Access['lockNames'],
  now: number,
): Promise<Row[]> {
  const idOf = (destination: string, name: string) => `${destination}/${name}`
  const idOfRow = ({ destination, key }: Row) => idOf(destination, nameOf(key))
  // In one order, so that processes that lock the same names don't wait for each other in turn.
  await lockNames(db, [...new Set(due.map(idOfRow))].sort())
  const names = due.map(({ key }) => nameOf(key))
  const holds = await db
    .selectFrom('key_holds')
    .select(['destination', 'name'])
    .where('name', 'in', names)
    .execute()
  const taken = new Set(holds.map(({ destination, name }) => idOf(destination, name)))
  const free: Row[] = []
  for (const row of due) {
    const id = idOfRow(row)
    if (taken.has(id)) await postpone(db, row, { next_attempt_at: now + HELD_PAUSE_MS })
    else free.push(row)
    taken.add(id)
  }
  return free
}

/** Those that nobody is promised any more. The others are due when that ends, or never. */
async function withoutPromised(db: Database, due: readonly Row[], now: number): Promise<Expiry[]> {
  const idOf = ({ destination, key }: ObjectName) => `${destination}/${key}`
  const found =
    due.length === 0
      ? []
      : await db
          .selectFrom('history')
          .select(['destination', 'key', eb => eb.fn.max('expires_at').as('until')])
          .select(sql<number>`max(case when expires_at is null then 1 else 0 end)`.as('forever'))
          .where(
            'key',
            'in',
            due.map(({ key }) => key),
          )
          .where('removed_at', 'is', null)
          .groupBy(['key', 'destination'])
          .execute()
  const promises = new Map(found.map(row => [idOf(row), row]))
  const free: Expiry[] = []
  for (const row of due) {
    const promise = promises.get(idOf(row))
    // Nothing is removed that the history does not hold.
    if (!promise?.until || promise.forever > 0) await forget(db, row)
    else if (promise.until > now)
      await postpone(db, row, { due_at: promise.until, next_attempt_at: promise.until })
    else free.push(toExpiry(row))
  }
  return free
}

async function postpone(
  db: Database,
  { destination, key }: Row,
  times: Partial<Pick<Row, 'due_at' | 'next_attempt_at'>>,
): Promise<void> {
  await db
    .updateTable('expiries')
    .set(times)
    .where('destination', '=', destination)
    .where('key', '=', key)
    .execute()
}

const isOf = ({ destination, key }: ObjectName) => sql<boolean>`key = ${key} and destination = ${destination}`

async function forget(db: Database, { destination, key }: ObjectName): Promise<void> {
  await db.deleteFrom('expiries').where('destination', '=', destination).where('key', '=', key).execute()
}

async function release(db: Database, holder: string): Promise<void> {
  await db.deleteFrom('key_holds').where('holder', '=', holder).execute()
}

function toExpiry({ destination, key, due_at, attempts, problem }: Row): Expiry {
  return { destination, key, dueAt: due_at, attempts, problem: problem ?? undefined }
}
