import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from '../packages/kysely.ts'
import type { IndexDefinition } from './migrate.ts'
import type { Database } from './tables.ts'

/** Interval at which a server looks whether another one has finished an index. */
const LOOK_AGAIN_MS = 250
/** Attempts to create an index that several servers create at the same time. */
const MOST_ATTEMPTS = 5
/** Another server created it at the same moment: duplicate_table, unique_violation, deadlock_detected. */
const IS_ELSEWHERE = /^(42P07|23505|40P01)$/

/**
 * Creates an index, with statistics, while uploads go on. A plain `create index` would block the writes of all servers until
 * its end.
 *
 * PostgreSQL leaves an invalid index if this fails, which it never uses and always updates
 * (postgresql.org/docs/current/sql-createindex.html, "Building Indexes Concurrently"). It is replaced.
 */
export async function buildIndexConcurrently(
  db: Database,
  { name, on, earlier }: IndexDefinition,
): Promise<void> {
  for (let attempt = 1; ; ) {
    const state = await stateOf(db, name)
    if (state === 'valid') break
    if (state === 'in progress') {
      await sleep(LOOK_AGAIN_MS)
      continue
    }
    try {
      if (state === 'invalid') await sql.raw(`drop index concurrently if exists ${name}`).execute(db)
      await sql.raw(`create index concurrently ${name} on ${on}`).execute(db)
      // Without statistics of an index on an expression, PostgreSQL expects 0.5 % of all rows in each look-up.
      await sql.raw(`analyze ${on.split(' ')[0]}`).execute(db)
    } catch (error) {
      const isElsewhere = error instanceof Error && 'code' in error && IS_ELSEWHERE.test(String(error.code))
      if (!isElsewhere || attempt++ === MOST_ATTEMPTS) throw error
    }
  }
  await sql.raw(`drop index concurrently if exists ${earlier}`).execute(db)
}

async function stateOf(db: Database, name: string): Promise<'valid' | 'invalid' | 'in progress' | undefined> {
  const { rows } = await sql<{ isValid: boolean; isRunning: boolean }>`
    select indisvalid as "isValid", exists (
      select 1 from pg_stat_progress_create_index where index_relid = indexrelid
    ) as "isRunning" from pg_index where indexrelid = to_regclass(${name})`.execute(db)
  const [found] = rows
  if (!found) return undefined
  if (found.isValid) return 'valid'
  return found.isRunning ? 'in progress' : 'invalid'
}
