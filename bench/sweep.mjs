/**
 * How fast expired files are deleted at S3: `npm run build && node bench/sweep.mjs [LATENCY_MS] [FOLDER]`, with the folder of
 * another checkout, built, for comparison. Fills a SQLite database with expired files, and prints how many are deleted a second.
 */
import { spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const FILES = 4000
const BATCH = 100
const [latency = '0', other] = process.argv.slice(2)
const root = other ? resolve(other) : fileURLToPath(new URL('..', import.meta.url))
const load = path => import(join(root, 'build', path))
const { s3 } = await load('providers/s3/index.js')
const { createOwner } = await load('store/owners.js')
const { openSqlite } = await load('store/sqlite.js')
const { sql, Rows } = await load('store/sql.js')
const { createSweeper } = await load('uploader/sweep.js')

const directory = await mkdtemp(join(tmpdir(), 'bench-sweep-'))
const program = fileURLToPath(new URL('s3-server.mjs', import.meta.url))
const standIn = spawn(process.execPath, [program, latency], { stdio: ['ignore', 'pipe', 'inherit'] })
const [line] = await once(standIn.stdout, 'data')
const options = { endpoint: JSON.parse(line).url, bucket: 'bench', urlPrefix: 'https://img.example.com' }
const config = s3.config.parse({ ...options, accessKeyId: 'id', secretAccessKey: 'secret' })
const target = await s3.open(config, { name: 'ci', warn: console.error })
const database = openSqlite(join(directory, 'store.db'))
const owner = createOwner(database)

const keys = Array.from({ length: FILES }, (_, index) => `ci/${index}.png`)
await database.tx(async db => {
  const { location } = target
  const objects = keys.map(key => [location + key, 's3/ci', location, key, 'x', 'stored', 0, 1, 1, 0, 2])
  const files = keys.map((key, index) => [
    ...['0-0-job', index, 's3/ci', location, location + key, key, `https://img.example.com/${key}`],
    ...[1, 'image/png', 'x', 'a.png', 'ci', 'r', 1],
  ])
  for (let start = 0; start < FILES; start += BATCH) {
    const batch = rows => new Rows(rows.slice(start, start + BATCH))
    await db.run(sql`insert into objects (name, destination, location, key, sha256, state, is_new, stored_at, expires_at,
      attempts, following) values ${batch(objects)}`)
    await db.run(sql`insert into files (upload, position, destination, location, object, key, url, size, content_type,
      sha256, origin, caller, request_id, expires_at) values ${batch(files)}`)
  }
})
const sweeping = new EventEmitter()
const sweeper = createSweeper({
  ...{ database, owner, everyMs: 1000, timeoutMs: 60_000, now: Date.now },
  destinations: [{ type: 's3', name: 'ci', target, location: target.location }],
  listener: {
    removed() {},
    failed: () => console.error('a removal failed'),
    due: count => count === 0 && sweeping.emit('end'),
  },
  ...{ mask: text => text, info() {}, warn: console.error, error: console.error },
})
const [before, cpu] = [performance.now(), process.cpuUsage()]
sweeper.start()
await once(sweeping, 'end')
const seconds = (performance.now() - before) / 1000
const { user, system } = process.cpuUsage(cpu)
const cpuMs = ((user + system) / 1000 / FILES).toFixed(2)
console.log(`${latency} ms: ${Math.round(FILES / seconds)} objects/s, ${cpuMs} ms of processor time for each`)
await sweeper.stop()
await owner.end()
await database.close()
await target.close()
standIn.kill()
await rm(directory, { recursive: true })
