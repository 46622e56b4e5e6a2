import { setTimeout as sleep } from 'node:timers/promises'
import { type RawBuilder, sql } from '../packages/kysely.ts'
import type { Use } from './access.ts'

/** Rows that one transaction looks at. */
const [FEWEST_ROWS, MOST_ROWS] = [50, 1000]
/** What one may take. SQLite does its work inside the event loop, so nothing else goes on meanwhile. */
const LONG_MS = 5
/** For everything else, between two of them. */
const PAUSE_MS = 5

/** Key and time of what grows with every upload. */
const COLUMNS = {
  jobs: ['id', 'finished_at'],
  history: ['job_id', 'time'],
  repetitions: ['key', 'created_at'],
} as const

/**
 * Deletes the rows of a table whose time is before another one, a few at a time. It goes through all of them by their key,
 * since an index of times would cost every upload.
 *
 * @param condition what else must hold of them, beginning with `and`
 * @returns how many went
 */
export async function prune(
  write: Use,
  table: keyof typeof COLUMNS,
  before: number,
  condition: RawBuilder<unknown> = sql``,
): Promise<number> {
  const [keyColumn, timeColumn] = COLUMNS[table]
  const [key, time] = [sql.ref(keyColumn), sql.ref(timeColumn)]
  const rows = sql.table(table)
  let gone = 0
  let from = ''
  for (let count = FEWEST_ROWS; ; ) {
    const start = performance.now()
    const to = await write(async db => {
      const further = sql<{ key: string }>`select ${key} as key from ${rows} where ${key} > ${from}
        order by ${key} limit 1 offset ${count}`
      const last = (await further.execute(db)).rows[0]?.key
      const upTo = last === undefined ? sql`` : sql`and ${key} <= ${last}`
      // The plus keeps SQLite from looking by an index of times, which knows no bound.
      const part = sql`delete from ${rows} where ${key} > ${from} ${upTo} and +${time} < ${before} ${condition}`
      gone += Number((await part.execute(db)).numAffectedRows ?? 0)
      return last
    })
    if (to === undefined) return gone
    from = to
    const isLong = performance.now() - start > LONG_MS
    count = isLong ? Math.max(FEWEST_ROWS, Math.floor(count / 2)) : Math.min(MOST_ROWS, count * 2)
    await sleep(PAUSE_MS)
  }
}
