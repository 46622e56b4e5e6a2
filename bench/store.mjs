/**
 * What the database costs an upload: SQLite. Begins and ends uploads of one file, as many at a time as there are clients, and prints
 * the processor time of one, and the size of the database for each. Compare it with the row "100 KB, 16 clients" of
 * `npm run bench`.
 *
 * Usage: npm run build && node bench/store.mjs [--clients N] [--uploads N] [--rounds N] [--keyed] [--quota]
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createOwner } from '../build/store/owners.js'
import { openSqlite } from '../build/store/sqlite.js'
import { newUploadId } from '../build/store/upload-id.js'
import { begin, finish } from '../build/store/uploads.js'
import { median } from './statistics.mjs'

const { values } = parseArgs({
  options: {
    clients: { type: 'string', default: '16' },
    uploads: { type: 'string', default: '4000' },
    rounds: { type: 'string', default: '9' },
    keyed: { type: 'boolean', default: false },
    quota: { type: 'boolean', default: false },
  },
})
const [clients, uploads, rounds] = [values.clients, values.uploads, values.rounds].map(Number)

const directory = await mkdtemp(join(tmpdir(), 'bench-store-'))
const path = join(directory, 'store.db')
const database = openSqlite(path)
const owner = createOwner(database)
await owner.beat()

const at = { destination: 'local/Default', location: '/srv/pictures/' }
const quotas = values.quota ? [{ client: 'ci', group: 'ci', windowMs: 86_400_000, files: 1e9 }] : []

async function upload() {
  const id = newUploadId(Date.now())
  const key = `2026/11/picture-${id}.png`
  const sha256 = randomBytes(32).toString('hex')
  const started = {
    ...{ id, createdAt: Date.now(), owner: owner.id, requestId: randomUUID(), caller: 'ci' },
    ...{ destination: at.destination, origins: ['picture.png'] },
  }
  const claimant = { id, claimed: new Set() }
  const wanted = {
    ...at,
    ...{ key, sha256, onConflict: 'rename', isContentKey: true, dedupe: false, expiresAt: null },
  }
  const request = values.keyed ? { key: id, fingerprint: sha256, seed: id } : undefined
  const files = [{ index: 0, size: 102_400, wanted: [wanted] }]
  await begin(database, started, claimant, files, { request, quotas })
  await turn() // an upload has its delivery here
  const file = {
    ...{ index: 0, origin: 'picture.png', url: `files/Default/${key}`, key, size: 102_400 },
    ...{ contentType: 'image/png', sha256, ...at },
  }
  const end = { state: 'done', files: [file], failed: [], isSettled: true }
  await finish(database, started, end)
}

/** Processor time of one, in microseconds. */
async function measure(work) {
  let left = uploads
  const client = async () => {
    while (left-- > 0) {
      await work()
      await turn()
    }
  }
  const before = process.cpuUsage()
  await Promise.all(Array.from({ length: clients }, client))
  const { user, system } = process.cpuUsage(before)
  return (user + system) / uploads
}

try {
  const costs = []
  for (let round = -2; round < rounds; round++) {
    const nothing = await measure(turn)
    const cost = await measure(upload)
    if (round < 0) continue
    costs.push(cost - nothing)
  }
  console.log(`${median(costs).toFixed(0)} µs of processor time for an upload`)
} finally {
  await owner.end()
  await database.close()
  console.log(`${((await stat(path)).size / uploads / (rounds + 2) / 1000).toFixed(2)} KB for each`)
  await rm(directory, { recursive: true, force: true })
}
