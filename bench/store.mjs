/**
 * What the database costs an upload. Begins and ends jobs of one file, as many at a time as there are clients, and prints
 * the processor time of one. Compare it with the row "100 KB, 16 clients" of `npm run bench`.
 *
 * Usage: npm run build && node bench/store.mjs [--store sqlite|postgres://USER:PASSWORD@HOST/DATABASE] [--clients N]
 *        [--jobs N] [--rounds N] [--keyed]
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createPostgresStore } from '../build/store/postgres.js'
import { createSqliteStore } from '../build/store/sqlite.js'
import { createFinalizer } from '../build/uploader/jobs/finalizer.js'
import { createIdempotency } from '../build/uploader/jobs/idempotency.js'
import { newJob } from '../build/uploader/jobs/new-job.js'
import { timeOfPostgres } from './servers.mjs'
import { median } from './statistics.mjs'

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'sqlite' },
    clients: { type: 'string', default: '16' },
    jobs: { type: 'string', default: '4000' },
    rounds: { type: 'string', default: '9' },
    keyed: { type: 'boolean', default: false },
  },
})
const [clients, jobs, rounds] = [values.clients, values.jobs, values.rounds].map(Number)
const isPostgres = values.store !== 'sqlite'

const directory = await mkdtemp(join(tmpdir(), 'bench-store-'))
const store = isPostgres ? createPostgresStore(values.store) : createSqliteStore(join(directory, 'store.db'))
const now = () => new Date()
const finalizer = createFinalizer({
  ...{ store, now, hooks: [], keepDays: 7, env: {}, mask: text => text, warn: console.error },
})
const idempotency = createIdempotency(store, finalizer.owner)
const signal = new AbortController().signal

function newUpload() {
  const destination = { type: 'local', name: 'Default' }
  const request = { destination, inputs: [{ origin: 'picture.png' }], caller: { name: 'ci' }, requestId: 'r' }
  const job = newJob(request, finalizer.owner, now())
  const key = `2026/11/picture-${job.id}.png`
  const url = `http://127.0.0.1:36677/files/Default/${key}`
  const sha256 = randomBytes(32).toString('hex')
  return {
    job,
    file: { index: 0, origin: 'picture.png', url, key, size: 102_400, contentType: 'image/png', sha256 },
  }
}

async function upload({ job, file }, idempotencyKey, reservation) {
  await finalizer.begin(job, idempotencyKey, reservation)
  await turn() // an upload has its delivery here
  await finalizer.complete(job, [file], { isWhole: true })
}

async function uploadKeyed(one) {
  const key = randomUUID()
  const run = async ({ reservation }) => {
    await upload(one, key, reservation)
    return { status: 200, body: '{}', jobId: undefined, keep: 'job' }
  }
  await idempotency.respondOnce(key, one.file.sha256, run, signal)
}

/** Processor time of a job in microseconds: of this process, and of PostgreSQL. */
async function measure(work) {
  let left = jobs
  const client = async () => {
    while (left-- > 0) {
      await work(newUpload())
      await turn()
    }
  }
  const [before, there] = [process.cpuUsage(), isPostgres ? timeOfPostgres() : 0]
  await Promise.all(Array.from({ length: clients }, client))
  const { user, system } = process.cpuUsage(before)
  return { here: (user + system) / jobs, there: isPostgres ? (timeOfPostgres() - there) / jobs : 0 }
}

const works = [
  ['without an Idempotency-Key', one => upload(one)],
  ...(values.keyed ? [['with an Idempotency-Key', uploadKeyed]] : []),
]
try {
  const costs = new Map(works.map(([name]) => [name, { here: [], there: [] }]))
  for (let round = -2; round < rounds; round++) {
    for (const [name, work] of works) {
      const nothing = await measure(async () => void (await turn()))
      const { here, there } = await measure(work)
      if (round < 0) continue
      costs.get(name).here.push(here - nothing.here)
      costs.get(name).there.push(there)
    }
  }
  for (const [name, { here, there }] of costs) {
    const database = isPostgres ? `, ${median(there).toFixed(0)} µs of PostgreSQL` : ''
    console.log(`${name}: ${median(here).toFixed(0)} µs of processor time a job${database}`)
  }
} finally {
  await idempotency.close()
  await finalizer.close()
  await rm(directory, { recursive: true, force: true })
}
