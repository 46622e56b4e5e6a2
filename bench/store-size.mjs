/**
 * How a large PostgreSQL database performs. Fills an empty one with generated rows, some of them 40 days old, and prints how
 * long look-ups, the deletion of the old rows, and VACUUM take.
 *
 * Usage: npm run build && node bench/store-size.mjs postgres://USER:PASSWORD@HOST/EMPTY_DATABASE
 *   [--rows 5000000] [--jobs ROWS] [--old 500000]
 *
 * --jobs: jobs and idempotency records, which a server deletes after some time. Default: as many as rows
 */
import { parseArgs } from 'node:util'
import pg from 'pg'
import { createPostgresStore } from '../build/store/postgres.js'

const DAY_MS = 24 * 60 * 60 * 1000
const ROWS_AT_ONCE = 1_000_000
const LOOK_UPS = 200

const { values, positionals } = parseArgs({
  options: {
    rows: { type: 'string', default: '5000000' },
    jobs: { type: 'string' },
    old: { type: 'string', default: '500000' },
  },
  allowPositionals: true,
})
const [url = ''] = positionals
const [rows, old] = [Number(values.rows), Number(values.old)]
const jobs = Math.min(rows, Number(values.jobs ?? rows))
const store = createPostgresStore(url, 60 * 60 * 1000)
const client = new pg.Client(url)

async function timed(what, work) {
  const begun = performance.now()
  await work()
  const ms = performance.now() - begun
  console.log(`| ${what} | ${ms < 1000 ? `${ms.toFixed(1)} ms` : `${(ms / 1000).toFixed(1)} s`} |`)
}

/** The first `old` uploads are 40 days old, the others are from the last week. IDs of jobs begin with the time. */
async function fill() {
  const now = Date.now()
  for (let from = 1; from <= rows; from += ROWS_AT_ONCE) {
    const to = Math.min(rows, from + ROWS_AT_ONCE - 1)
    await client.query('drop table if exists made')
    await client.query(
      `create temp table made as select n, ms, overlay(overlay(lpad(to_hex(ms), 12, '0') || md5(n::text)
         placing '-' from 9 for 0) placing '-' from 14 for 0) as id
       from (select n, case when n <= ${old} then ${now - 40 * DAY_MS} + n
         else ${now - 6 * DAY_MS} + (n * ${5 * DAY_MS}::bigint / ${rows}) end as ms
         from generate_series(${from}, ${to}) as n) as numbers`,
    )
    await client.query(
      `insert into history (job_id, position, time, origin, url, key, size, content_type, sha256, destination, caller, request_id, place)
       select id, 0, ms, 'picture.png', 'https://img.example.com/' || id || '.png', id || '.png', 102400, 'image/png',
         md5(n::text) || md5((-n)::text), 's3/images', 'ci', md5(n::text), 's3://images/' from made`,
    )
    await client.query(
      `insert into jobs (id, state, created_at, finished_at, owner, request_id, caller, destination, origins, files, steps, attempts, next_attempt_at)
       select id, 'finished', ms, ms, 'bench', md5(n::text), 'ci', 's3/images', '["picture.png"]', '[]', '["history"]', 0, 0
       from made where n <= ${jobs}`,
    )
    await client.query(
      `insert into repetitions (key, fingerprint, owner, created_at, job_id)
       select md5((n + 1)::text), md5(n::text), 'bench', ms, id from made where n <= ${jobs}`,
    )
    console.error(`${to} rows`)
  }
}

async function rowOf(table) {
  const { rows: found } = await client.query(`select * from ${table} tablesample system (0.1) limit 1`)
  return found[0]
}

await store.owners() // This creates the tables.
await client.connect()
try {
  await fill()
  await client.query('vacuum analyze')
  const { rows: sizes } = await client.query('select pg_database_size(current_database()) as bytes')
  console.log(
    `${rows} history entries, ${jobs} jobs, ${jobs} idempotency records, ${(sizes[0].bytes / 1e9).toFixed(1)} GB\n\n| Query | Time |\n|---|---|`,
  )
  const { sha256 } = await rowOf('history')
  await timed('newest 100 entries', () => store.history({ limit: 100 }))
  await timed('newest 100 entries of a destination', () =>
    store.history({ limit: 100, among: ['s3/images'] }),
  )
  await timed('search without a hit', () => store.history({ limit: 100, text: 'no such file' }))
  await timed('first search by hash, which creates the index', () =>
    store.history({ limit: 1, sha256, isRemoved: false }),
  )
  const known = []
  for (let n = 0; n < LOOK_UPS; n++) {
    const place = 1 + Math.floor((n / LOOK_UPS) * jobs)
    const { rows: made } = await client.query(
      'select md5(($1::bigint)::text) || md5((-$1::bigint)::text) as sha256',
      [place],
    )
    const { rows: keys } = await client.query('select md5(($1::bigint + 1)::text) as key', [place])
    known.push({ sha256: made[0].sha256, key: keys[0].key })
  }
  await timed(`${LOOK_UPS} searches by hash, one after the other`, async () => {
    for (const one of known) await store.history({ limit: 1, sha256: one.sha256, isRemoved: false })
  })
  await timed(`${LOOK_UPS} look-ups of an idempotency key`, async () => {
    for (const one of known) await store.idempotencyRecord(one.key)
  })
  const before = Date.now() - 20 * DAY_MS
  await timed(`delete ${old} old jobs`, () => store.pruneJobs(before))
  await timed(`delete ${old} old idempotency records`, () => store.pruneIdempotencyRecords(before))
  await timed('read all idempotency records, and delete none', () => store.pruneIdempotencyRecords(before))
  await timed('first deletion in the history, which creates an index', () => store.pruneHistory(0))
  await timed(`delete ${old} old entries of the history`, () => store.pruneHistory(before))
  await timed('vacuum', () => client.query('vacuum'))
} finally {
  await client.end()
  await store.close()
}
