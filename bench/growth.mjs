/**
 * What a large history costs: uploads of 100 KB to servers whose SQLite databases have so many jobs, entries and objects, in
 * turns. Usage: npm run build && node bench/growth.mjs [--rows 0,1000000,5000000] [--ms 1000] [--rounds 5]
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createOwner } from '../build/store/owners.js'
import { openSqlite } from '../build/store/sqlite.js'
import { loadSqlite } from '../build/store/sqlite-library.js'
import { takeMemory } from './memory.mjs'
import { startClient, startServer, uploadServer } from './servers.mjs'
import { median, spread } from './statistics.mjs'

const DAY_MS = 24 * 60 * 60 * 1000
const LOAD = { kind: 'upload', size: 100 * 1024, clients: 16, verify: 'one' }

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '0,1000000,5000000' },
    ms: { type: 'string', default: '1000' },
    rounds: { type: 'string', default: '5' },
  },
})
const directory = await mkdtemp(join(tmpdir(), 'bench-growth-'))
const client = startClient(true)

/** Makes a database with uploads that ended yesterday, one millisecond apart. */
async function makeDatabase(path, rows) {
  const database = openSqlite(path)
  const owner = createOwner(database)
  await owner.beat()
  await owner.end()
  await database.close()
  const start = Date.now() - DAY_MS - rows
  const time = `(${start} + i)`
  const id = `printf('%08x-%04x-7000-8000-%012x', ${time} >> 16, ${time} & 65535, i)`
  const key = `'2026/11/picture-' || i || '.png'`
  const from = `from (with recursive n(i) as (select 0 union all select i + 1 from n where i < ${rows - 1}) select i from n)`
  const sqlite = new (loadSqlite().DatabaseSync)(path)
  if (rows > 0)
    for (const statement of [
      `insert into uploads (id, state, owner, created_at, ended_at, caller, destination, request_id, origins, outcomes, steps,
         attempts, reserved) select ${id}, 'done', 'bench', ${time}, ${time}, 'loopback', 'local/Default', 'r', '["picture.png"]',
         '{}', '[]', 0, '[]' ${from}`,
      `insert into files (upload, position, destination, location, object, key, url, size, content_type, sha256, origin, caller,
         request_id) select ${id}, 0, 'local/Default', 'file:/pictures/', 'file:/pictures/' || ${key}, ${key},
         'files/Default/' || ${key}, 102400, 'image/png', lower(hex(randomblob(32))), 'picture.png', 'loopback', 'r' ${from}`,
      `insert into objects (name, destination, location, key, sha256, state, is_new, stored_at, attempts, following)
         select object, destination, location, key, sha256, 'stored', 0, ${start}, 0, 2 from files`,
    ])
      sqlite.exec(statement)
  sqlite.close()
}

async function upload({ url, cpuMs, emptyFiles }, more) {
  await takeMemory()
  const before = await cpuMs()
  const { done, seconds, failures } = await client.run({ ...LOAD, url, ...more })
  if (failures.length > 0) throw new Error(failures[0])
  await emptyFiles()
  return { rate: done / seconds, cpuMs: ((await cpuMs()) - before) / done }
}

try {
  const all = []
  for (const rows of values.rows.split(',').map(Number)) {
    const path = join(directory, `${rows}.db`)
    await makeDatabase(path, rows)
    const contender = uploadServer(`${rows}`, { local: { durable: false } }, undefined, [], {
      database: { path },
    })
    all.push({ rows, server: await startServer(contender, { directory, isPinned: true }), runs: [] })
  }
  // Until V8 has compiled what a server runs all day.
  for (const { server } of all) await upload(server, { requests: 500 })
  for (let round = 0; round < Number(values.rounds); round++)
    for (const { server, runs } of all) runs.push(await upload(server, { ms: Number(values.ms) }))
  console.log('| entries | uploads/s | CPU ms | spread |\n|---|---|---|---|')
  for (const { rows, server, runs } of all) {
    const costs = runs.map(({ cpuMs }) => cpuMs)
    const cells = [median(runs.map(({ rate }) => rate)).toFixed(0), median(costs).toFixed(2)]
    console.log(`| ${rows} | ${cells.join(' | ')} | ±${(spread(costs) * 100).toFixed(0)} % |`)
    await server.stop()
  }
} finally {
  client.stop()
  await rm(directory, { recursive: true, force: true })
}
