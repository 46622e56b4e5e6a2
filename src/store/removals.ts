import type { Database } from './database.ts'
import { heldAmong, isHeld } from './objects.ts'
import { type Db, List, Raw, sql } from './sql.ts'

/** Frees the objects whose removal this process has not completed, because the database failed. None of them is being removed now. */
export async function releaseRemovals(db: Db, owner: string): Promise<void> {
  await db.run(
    sql`update objects set state = 'stored', holder = null where holder = ${owner} and state = 'removing'`,
  )
}

/** If a transfer without a known outcome can't be removed, its content stays unknown. */
const REMOVING = new Raw("state = 'removing', sha256 = case when state = 'storing' then '' else sha256 end")

/** An object that is being removed. */
export interface DueObject {
  readonly name: string
  readonly destination: string
  readonly location: string
  readonly key: string
  readonly expiresAt: number
  /** Number of failed attempts to remove it. */
  readonly attempts: number
}

/**
 * Takes expired objects, to remove them. No other process gets them, and uploads of them wait.
 *
 * @param wanted `now`: by the clock of this machine, which may be ahead of that of the database; the earlier one counts.
 *   `longestPauseMs`: a next attempt that is further away was planned by a clock that has been set back, and is due
 */
export function takeDue(
  database: Database,
  wanted: {
    readonly owner: string
    readonly among: readonly string[]
    readonly now: number
    readonly limit: number
    readonly longestPauseMs: number
  },
): Promise<DueObject[]> {
  const { owner, among, limit, longestPauseMs } = wanted
  return database.tx(async db => {
    const now = Math.min(wanted.now, await db.now())
    const removing = await heldAmong(db, 'removing')
    const rows = await db.all<DueRow>(
      sql`select name, destination, location, key, expires_at, attempts, state, holder from objects where expires_at <= ${now}
        and (retry_at is null or retry_at <= ${now} or retry_at > ${now + longestPauseMs})
        and destination in (${new List(among)}) and (state <> 'removing' or holder not in (${new List(removing)}))
        order by expires_at limit ${limit}${db.forUpdateSkipLocked}`,
    )
    const free: DueRow[] = []
    for (const row of rows) if (row.state === 'stored' || !(await isHeld(db, row.holder))) free.push(row)
    if (free.length > 0)
      await db.run(
        sql`update objects set ${REMOVING}, holder = ${owner} where name in (${new List(free.map(({ name }) => name))})`,
      )
    return free.map(({ name, destination, location, key, expires_at, attempts }) => ({
      ...{ name, destination, location, key, attempts },
      expiresAt: expires_at,
    }))
  })
}

interface DueRow {
  readonly name: string
  readonly destination: string
  readonly location: string
  readonly key: string
  readonly expires_at: number
  readonly attempts: number
  readonly state: 'storing' | 'stored' | 'removing'
  readonly holder: string | null
}

/**
 * Takes stored objects, to remove them now.
 *
 * @returns the names of those that it got. Others are being stored or removed
 */
export async function takeForRemoval(
  db: Db,
  owner: string,
  names: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await db.all<{ name: string; state: string; holder: string | null }>(
    sql`select name, state, holder from objects where name in (${new List(names)}) order by name${db.forUpdate}`,
  )
  const taken: string[] = []
  for (const { name, state, holder } of rows)
    if (state === 'stored' || !(await isHeld(db, holder))) taken.push(name)
  if (taken.length > 0)
    await db.run(sql`update objects set ${REMOVING}, holder = ${owner} where name in (${new List(taken)})`)
  return new Set(taken)
}

/** Writes that objects are removed. */
export function noteRemoved(database: Database, names: readonly string[]): Promise<void> {
  return database.tx(async db => {
    // Others were stored again, because this process has paused.
    const removed = await db.all<{ name: string }>(
      sql`delete from objects where name in (${new List(names)}) and state = 'removing' returning name`,
    )
    const list = new List(removed.map(({ name }) => name))
    await db.run(
      sql`update files set removed_at = ${db.time} where object in (${list}) and removed_at is null`,
    )
  })
}

/** Writes that an object could not be removed, and when to try again. @param problem undefined: it was not tried */
export async function postpone(
  database: Database,
  owner: string,
  name: string,
  { retryAt, problem }: { retryAt?: number; problem?: string } = {},
): Promise<void> {
  await database.tx(db =>
    db.run(
      problem === undefined
        ? sql`update objects set state = 'stored', holder = null where name = ${name} and state = 'removing' and holder = ${owner}`
        : sql`update objects set state = 'stored', holder = null, retry_at = ${retryAt ?? null}, attempts = attempts + 1, problem = ${problem}
            where name = ${name} and state = 'removing' and holder = ${owner}`,
    ),
  )
}

/** An expired object that still exists. */
export interface Overdue {
  readonly destination: string
  readonly key: string
  /** When it expired, milliseconds since the epoch. */
  readonly dueAt: number
  readonly attempts: number
  readonly problem: string | undefined
}

/** Expired objects that still exist, oldest first. @param among destinations; undefined: all */
export async function overdue(
  db: Db,
  now: number,
  among: readonly string[] | undefined,
  limit: number,
): Promise<Overdue[]> {
  const here = among === undefined ? sql`` : sql`and destination in (${new List(among)})`
  const rows = await db.all<Omit<Overdue, 'dueAt'> & { expires_at: number; problem: string | null }>(
    sql`select destination, key, expires_at, attempts, problem from objects where expires_at <= ${now} ${here}
      order by expires_at limit ${limit}`,
  )
  return rows.map(({ expires_at, problem, ...row }) => ({
    ...row,
    dueAt: expires_at,
    problem: problem ?? undefined,
  }))
}

/** Number of expired objects that still exist, counted up to `most`. */
export async function countDue(db: Db, now: number, among: readonly string[], most: number): Promise<number> {
  const [row] = await db.all<{ count: number }>(
    sql`select count(*) as count from (select 1 as one from objects
      where expires_at <= ${now} and destination in (${new List(among)}) limit ${most}) as due`,
  )
  return Number(row?.count ?? 0)
}
