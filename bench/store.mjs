/**
 * What the store costs an upload: `npm run build && node bench/store.mjs`. Begins and ends jobs of one file, as many at
 * a time as there are clients, and prints the processor time of one. Compare it with the row "100 KB, 16 clients" of
 * `npm run bench`.
 */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { createSqliteStore } from '../dist/store/sqlite.js'
import { createFinalizer } from '../dist/uploader/jobs/finalizer.js'
import { newJobId } from '../dist/uploader/jobs/job-id.js'
import { median } from './statistics.mjs'

const CLIENTS = 16
const ROUNDS = 9
const JOBS = 4000

const directory = await mkdtemp(join(tmpdir(), 'bench-store-'))
const finalizer = createFinalizer({
  store: createSqliteStore(join(directory, 'store.db')),
  hooks: [],
  keepDays: 7,
  env: {},
  mask: text => text,
  now: () => new Date(),
  warn: console.error,
})

function newJob() {
  const id = newJobId(new Date())
  const file = {
    index: 0,
    origin: 'picture.png',
    url: `http://127.0.0.1:36677/files/Default/2026/11/picture-${id}.png`,
    key: `2026/11/picture-${id}.png`,
    size: 102_400,
    contentType: 'image/png',
    sha256: randomBytes(32).toString('hex'),
  }
  const job = {
    id,
    state: 'uploading',
    createdAt: Date.now(),
    owner: finalizer.owner,
    requestId: id,
    caller: 'loopback',
    destination: 'local/Default',
    origins: ['picture.png'],
    files: [],
    steps: [],
    attempts: 0,
    problem: undefined,
  }
  return { job, file }
}

/** Processor time of a job in microseconds. */
async function measure(withStore) {
  let left = JOBS
  const client = async () => {
    while (left-- > 0) {
      const { job, file } = newJob()
      if (withStore) await finalizer.begin(job)
      // An upload has its delivery here.
      await turn()
      if (withStore) await finalizer.complete(job, [file], true)
      await turn()
    }
  }
  const before = process.cpuUsage()
  await Promise.all(Array.from({ length: CLIENTS }, client))
  const { user, system } = process.cpuUsage(before)
  return (user + system) / JOBS
}

try {
  const costs = []
  for (let round = -2; round < ROUNDS; round++) {
    const cost = (await measure(true)) - (await measure(false))
    if (round >= 0) costs.push(cost)
  }
  console.log(
    `${median(costs).toFixed(0)} µs of processor time a job (${costs.map(cost => cost.toFixed(0)).join(' ')})`,
  )
} finally {
  await finalizer.close()
  await rm(directory, { recursive: true, force: true })
}
