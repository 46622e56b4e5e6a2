/**
 * How a large PostgreSQL database performs. Fills an empty one with generated rows, half of them 30 days old, and prints how
 * long the searches, the deletion of the older half, and VACUUM take.
 *
 * Usage: npm run build && node bench/store-size.mjs postgres://USER:PASSWORD@HOST/EMPTY_DATABASE [--rows 5000000]
 */
import { parseArgs } from 'node:util'
import pg from 'pg'
import { createPostgresStore } from '../dist/store/postgres.js'

const DAY_MS = 24 * 60 * 60 * 1000

const { values, positionals } = parseArgs({
  options: { rows: { type: 'string', default: '5000000' } },
  allowPositionals: true,
})
const [url = ''] = positionals
const rows = Number(values.rows)
const store = createPostgresStore(url, 60 * 60 * 1000)
const client = new pg.Client(url)

async function timed(what, work) {
  const begun = performance.now()
  await work()
  console.log(`| ${what} | ${((performance.now() - begun) / 1000).toFixed(2)} s |`)
}

/** IDs of jobs are UUIDs of version 7, which begin with the time. */
async function fill() {
  const now = Date.now()
  await client.query(
    `create temp table made as select n, ms, overlay(overlay(lpad(to_hex(ms), 12, '0') || md5(n::text)
       placing '-' from 9 for 0) placing '-' from 14 for 0) as id
     from (select n, ${now} - (case when n % 2 = 0 then ${30 * DAY_MS}::bigint else 0 end) - n % 1000 as ms
       from generate_series(1, ${rows}) as n) as numbers`,
  )
  await client.query(
    `insert into jobs (id, state, created_at, finished_at, owner, request_id, caller, destination, origins, files, steps, attempts, next_attempt_at)
     select id, 'finished', ms, ms, 'bench', md5(n::text), 'ci', 's3/images', '["picture.png"]', '[]', '["history"]', 0, 0 from made`,
  )
  await client.query(
    `insert into history (job_id, position, time, origin, url, key, size, content_type, sha256, destination, caller, request_id)
     select id, 0, ms, 'picture.png', 'https://img.example.com/' || id || '.png', id || '.png', 102400, 'image/png',
       md5(n::text) || md5((-n)::text), 's3/images', 'ci', md5(n::text) from made`,
  )
  await client.query(
    `insert into repetitions (key, fingerprint, owner, created_at, job_id)
     select md5((n + 1)::text), md5(n::text), 'bench', ms, id from made`,
  )
}

await store.owners() // This creates the tables.
await client.connect()
try {
  await fill()
  await client.query('vacuum analyze')
  const { rows: sizes } = await client.query('select pg_database_size(current_database()) as bytes')
  console.log(
    `${rows} uploads, ${(sizes[0].bytes / rows).toFixed(0)} bytes each\n\n| Query | Time |\n|---|---|`,
  )
  const sha256 = (await client.query('select sha256 from history limit 1')).rows[0].sha256
  await timed('newest 100 entries', () => store.history({ limit: 100 }))
  await timed('newest 100 entries of a destination', () =>
    store.history({ limit: 100, among: ['s3/images'] }),
  )
  await timed('search without a hit', () => store.history({ limit: 100, text: 'no such file' }))
  await timed('first search by hash, which creates the index', () =>
    store.history({ limit: 1, sha256, isRemoved: false }),
  )
  await timed('search by hash', () => store.history({ limit: 1, sha256, isRemoved: false }))
  const before = Date.now() - 7 * DAY_MS
  await timed('delete the older half of the jobs', () => store.pruneJobs(before))
  await timed('delete the older half of the idempotency records', () => store.pruneIdempotencyRecords(before))
  await timed('read all idempotency records, and delete none', () => store.pruneIdempotencyRecords(before))
  await timed('delete the older half of the history', () => store.pruneHistory(before))
  await timed('vacuum', () => client.query('vacuum'))
} finally {
  await client.end()
  await store.close()
}
