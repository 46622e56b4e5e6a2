import { dropOwner, isGone, newOwner, parseOwner, SCOPE } from '../flow/owner.ts'
import type { Database } from './database.ts'
import { type Db, sql } from './sql.ts'

/** A process without a sign of life for so long has ended. */
const LEASE_MS = 30_000
/** Pause between two signs of life. */
const BEAT_MS = 5000

/** What a process serves that listens for requests. */
export interface Served {
  /** Its port may differ from the configured one. */
  readonly url: string
  /** Its destinations, as `placeIn` names them. */
  readonly destinations: readonly string[]
}

/** This process, or a part of it, as others see it in the database: whether it works on an upload or an object, or has ended. */
export interface Owner {
  readonly id: string
  /** Gives a sign of life. It is a write, so it shows whether the database works. */
  beat(): Promise<void>
  /** Has other processes of this machine know what this one serves, and gives a sign of life. */
  serve(served: Served): Promise<void>
  /** Gives a sign of life unless there was one a moment ago. Must be called before something is held for a longer time. */
  keepAlive(): Promise<void>
  /**
   * Whether the signs of life of other processes can be relied on: while the database was down or the machine was asleep, no
   * process could give one.
   */
  isContinuous(): boolean
  /** Gives signs of life at intervals. */
  start(): void
  /** Removes the owner from the database. What it holds is free then. */
  end(): Promise<void>
}

export function createOwner(database: Database): Owner {
  const id = newOwner(SCOPE)
  // By the clock that others compare signs of life with: the monotonic one stops while a machine sleeps.
  let [last, beforeLast] = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY]
  let timer: NodeJS.Timeout | undefined
  let hasBeaten = false
  let serves: string | null = null

  async function beat(): Promise<void> {
    hasBeaten = true
    const at = Date.now()
    await database.tx(async db => {
      await db.run(sql`insert into owners (id, seen_at, serves) values (${id}, ${db.time}, ${serves})
        on conflict (id) do update set seen_at = excluded.seen_at, serves = excluded.serves`)
    })
    ;[last, beforeLast] = [at, last]
  }

  return {
    id,
    beat,
    serve(served) {
      serves = JSON.stringify(served)
      return beat()
    },
    async keepAlive() {
      if (Math.abs(Date.now() - last) >= BEAT_MS) await beat()
    },
    isContinuous: () => Math.abs(last - beforeLast) < LEASE_MS / 2,
    start() {
      // If the database is down, the housekeeping logs it.
      timer ??= setInterval(() => void beat().catch(() => {}), BEAT_MS).unref()
    },
    async end() {
      clearInterval(timer)
      // A process that has not used the database must not create it.
      if (hasBeaten) await database.tx(db => db.run(sql`delete from owners where id = ${id}`)).catch(() => {})
      dropOwner(id)
    },
  }
}

/**
 * Whether an owner exists and its process has not ended. A process of this machine is looked up, so that a restart does not have
 * to wait for the end of a lease.
 */
export async function isAlive(db: Db, owner: string): Promise<boolean> {
  const [row] = await db.all<{ seen_at: number }>(sql`select seen_at from owners where id = ${owner}`)
  if (!row) return false
  const silentMs = (await db.now()) - row.seen_at
  return silentMs < LEASE_MS && !isGone(owner, silentMs, LEASE_MS)
}

/** The servers on this machine that use the database, always in the same order. */
export async function listServers(db: Db): Promise<Served[]> {
  const rows = await db.all<{ id: string; serves: string }>(
    sql`select id, serves from owners where serves is not null order by id`,
  )
  const found: Served[] = []
  for (const { id, serves } of rows)
    if (parseOwner(id)?.host === SCOPE && (await isAlive(db, id))) found.push(JSON.parse(serves))
  return found
}
