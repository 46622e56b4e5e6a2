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
const { createSqliteStore } = await load('store/sqlite.js')
const { createLease } = await load('uploader/jobs/lease.js')
const { createSweeper } = await load('uploader/jobs/sweeper.js')

const directory = await mkdtemp(join(tmpdir(), 'bench-sweep-'))
const program = fileURLToPath(new URL('s3-server.mjs', import.meta.url))
const standIn = spawn(process.execPath, [program, latency], { stdio: ['ignore', 'pipe', 'inherit'] })
const [line] = await once(standIn.stdout, 'data')
const options = { endpoint: JSON.parse(line).url, bucket: 'bench', urlPrefix: 'https://img.example.com' }
const config = s3.config.parse({ ...options, accessKeyId: 'id', secretAccessKey: 'secret' })
const target = await s3.open(config, { name: 'ci', warn: console.error })
const store = createSqliteStore(join(directory, 'store.db'))
const lease = createLease(store, 'me', 60_000, () => new Date())

for (let start = 0; start < FILES; start += BATCH) {
  const history = Array.from({ length: BATCH }, (_, index) => ({
    ...{
      time: 1,
      jobId: `job ${start}`,
      index,
      origin: 'a.png',
      url: `https://img.example.com/${start + index}`,
    },
    ...{
      key: `ci/${start + index}.png`,
      size: 1,
      contentType: 'image/png',
      sha256: 'x',
      destination: 's3/ci',
    },
    ...{ location: target.location, caller: 'ci', requestId: 'r', expiresAt: 1 },
  }))
  const job = { state: 'finished', owner: 'me', files: [], steps: [], now: 1, history }
  await store.deliver(`job ${start}`, job)
}
const sweeping = new EventEmitter()
const sweeper = createSweeper({
  ...{ store, owner: 'me', lease, withExpiry: new Set(), everyMs: 1000, timeoutMs: 60_000, now: Date.now },
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
await lease.end()
await store.close()
await target.close()
standIn.kill()
await rm(directory, { recursive: true })
