import { setTimeout as sleep } from 'node:timers/promises'
import { type RawBuilder, sql } from '../packages/kysely.ts'
import type { PruningLimits, StoreAccess } from './access.ts'

/** SQLite works in the event loop, so it blocks everything else. */
export const IN_EVENT_LOOP: PruningLimits = { mostRows: 1000, longMs: 5 }
/** Minimum number of rows that one transaction reads. */
const FEWEST_ROWS = 50
/** Pause between two transactions, for other work. */
const PAUSE_MS = 5

/** Primary key and time of the tables that grow with every upload. */
const COLUMNS = {
  jobs: ['id', 'finished_at'],
  history: ['job_id', 'time'],
  repetitions: ['key', 'created_at'],
} as const

/**
 * Deletes the rows of a table that are older than a time, a few at a time. It reads all rows in the order of their key,
 * because an index of times would slow down every upload.
 *
 * @param condition a further condition, beginning with `and`
 * @param end last key to read, if all later rows are too young. Default: that of the last row
 * @returns the number of deleted rows
 */
export async function prune(
  { write, pruning }: Pick<StoreAccess, 'write' | 'pruning'>,
  table: keyof typeof COLUMNS,
  before: number,
  condition: RawBuilder<unknown> = sql``,
  end?: string,
): Promise<number> {
  const [keyColumn, timeColumn] = COLUMNS[table]
  const [key, time] = [sql.ref(keyColumn), sql.ref(timeColumn)]
  const rows = sql.table(table)
  const isOld = end === undefined ? sql`` : sql`and ${key} <= ${end}`
  let gone = 0
  let from = ''
  for (let count = FEWEST_ROWS; ; ) {
    const start = performance.now()
    const to = await write(async db => {
      const further = sql<{ key: string }>`select ${key} as key from ${rows} where ${key} > ${from} ${isOld}
        order by ${key} limit 1 offset ${count}`
      const last = (await further.execute(db)).rows[0]?.key
      const upTo = last === undefined ? sql`` : sql`and ${key} <= ${last}`
      // The plus keeps SQLite from using an index of times, which has no bound.
      const part = sql`delete from ${rows} where ${key} > ${from} ${upTo} ${isOld} and +${time} < ${before} ${condition}`
      gone += Number((await part.execute(db)).numAffectedRows ?? 0)
      return last
    })
    if (to === undefined) return gone
    from = to
    const isLong = performance.now() - start > pruning.longMs
    count = isLong ? Math.max(FEWEST_ROWS, Math.floor(count / 2)) : Math.min(pruning.mostRows, count * 2)
    await sleep(PAUSE_MS)
  }
}
