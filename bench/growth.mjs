/**
 * What a large database costs: uploads of 100 KB to servers with so many jobs and history entries, in turns; then the
 * time of a heartbeat while the server has nothing to do, deletes old jobs, or deletes expired files; then memory during
 * many uploads.
 *
 * Usage: npm run build && node bench/growth.mjs [--rows 0,1000000,5000000] [--ms 1000] [--rounds 5]
 *        [--store sqlite|postgres://USER:PASSWORD@HOST/DATABASE] [--old ROWS] [--soak SECONDS] [--json FILE]
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { Agent, get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { createOwner } from '../build/store/owners.js'
import { openPostgres } from '../build/store/postgres.js'
import { openSqlite } from '../build/store/sqlite.js'
import { loadSqlite } from '../build/store/sqlite-library.js'
import { takeMemory } from './memory.mjs'
import { saveResults } from './results.mjs'
import { startClient, startServer, uploadServer } from './servers.mjs'
import { median, spread } from './statistics.mjs'

const DAY_MS = 24 * 60 * 60 * 1000
const SIZE = 100 * 1024
const CLIENTS = 16

const text = value => ({ type: 'string', default: value })
const { values } = parseArgs({
  options: {
    rows: text('0,1000000,5000000'),
    ms: text('1000'),
    rounds: text('5'),
    store: text('sqlite'),
    old: text('200000'),
    soak: text('0'),
    json: { type: 'string' },
  },
})
const [ms, rounds, old, soakS] = [values.ms, values.rounds, values.old, values.soak].map(Number)
const isPostgres = values.store !== 'sqlite'
const kind = isPostgres ? 'PostgreSQL' : 'SQLite'
const directory = await mkdtemp(join(tmpdir(), 'bench-growth-'))
const settings = { directory, isPinned: true }
const client = startClient(true)

/** Jobs and entries that end so many days before now, one millisecond apart. @param due folder of their files, if these have expired */
function statements(rows, days, due) {
  const start = Date.now() - days * DAY_MS - rows
  const hex = (value, digits) =>
    isPostgres ? `lpad(to_hex((${value})::bigint), ${digits}, '0')` : `printf('%0${digits}x', ${value})`
  const time = `(${start} + i)`
  const id = `${hex(`${time} >> 16`, 8)} || '-' || ${hex(`${time} & 65535`, 4)} || '-7000-8000-' || ${hex('i', 12)}`
  const hash = isPostgres ? 'md5(i::text) || md5((-i)::text)' : 'lower(hex(randomblob(32)))'
  const key = `'2026/11/picture-' || i || '.png'`
  const from = isPostgres
    ? `from generate_series(0::bigint, ${rows - 1}) as n(i)`
    : `from (with recursive n(i) as (select 0 union all select i + 1 from n where i < ${rows - 1}) select i from n)`
  const end = due ? time : 'null'
  const location = `'file:${due ?? '/pictures'}/'`
  return [
    `insert into uploads (id, state, owner, created_at, ended_at, caller, destination, request_id, origins, outcomes, steps,
       attempts, reserved) select ${id}, 'done', 'bench', ${time}, ${time}, 'loopback', 'local/Default', 'r', '["picture.png"]',
       '{}', '[]', 0, '[]' ${from}`,
    `insert into files (upload, position, destination, location, object, key, url, size, content_type, sha256, origin, caller,
       request_id, expires_at) select ${id}, 0, 'local/Default', ${location}, ${location} || ${key}, ${key},
       'files/Default/' || ${key}, 102400, 'image/png', ${hash}, 'picture.png', 'loopback', 'r', ${end} ${from}`,
    `insert into objects (name, destination, location, key, sha256, state, is_new, stored_at, expires_at, attempts, following)
       select object, destination, location, key, sha256, 'stored', 0, ${start}, expires_at, 0, 2 from files`,
  ]
}

async function makeTables(database) {
  const owner = createOwner(database)
  await owner.beat()
  await owner.end()
  await database.close()
}

/** A database with so many jobs. @returns its settings for a server, and a count of the rows of one of its tables */
async function makeDatabase(name, rows, days, due) {
  const sql = rows > 0 ? statements(rows, days, due) : []
  if (!isPostgres) {
    const path = join(directory, `${name}.db`)
    await makeTables(openSqlite(path))
    const database = new (loadSqlite().DatabaseSync)(path)
    for (const one of sql) database.exec(one)
    return {
      store: { path },
      count: async table => database.prepare(`select count(*) as n from ${table}`).get().n,
      close: async () => database.close(),
    }
  }
  const url = new URL(values.store)
  const admin = new pg.Client(values.store)
  await admin.connect()
  await admin.query(`drop database if exists ${name}`)
  await admin.query(`create database ${name}`)
  url.pathname = name
  await makeTables(openPostgres(url.href))
  const database = new pg.Client(url.href)
  await database.connect()
  for (const one of sql) await database.query(one)
  await database.query('vacuum analyze')
  return {
    database: { driver: 'postgres', url: url.href },
    count: async table => Number((await database.query(`select count(*) as n from ${table}`)).rows[0].n),
    close: async () => {
      await database.end()
      await admin.query(`drop database ${name}`)
      await admin.end()
    },
  }
}

const startWith = (name, { store }) =>
  startServer(uploadServer(name, { local: { durable: false } }, undefined, [], { store }), settings)

async function upload(server, load) {
  await takeMemory()
  const before = await server.cpuMs()
  const result = await client.run({
    kind: 'upload',
    url: server.url,
    size: SIZE,
    clients: CLIENTS,
    verify: 'one',
    ...load,
  })
  if (result.failures.length > 0) throw new Error(result.failures[0])
  await server.emptyFiles()
  return { rate: result.done / result.seconds, cpuMs: ((await server.cpuMs()) - before) / result.done }
}

async function measureGrowth() {
  const all = []
  for (const rows of values.rows.split(',').map(Number)) {
    const database = await makeDatabase(`growth_${rows}`, rows, 1)
    const server = await startWith(`growth ${rows}`, database)
    all.push({ rows, database, server, runs: [] })
  }
  // Until V8 has compiled what a server runs all day.
  for (const { server } of all) await upload(server, { requests: 500 })
  for (let round = 0; round < rounds; round++)
    for (const { server, runs } of all) runs.push(await upload(server, { ms }))
  console.log(`| ${kind}, entries | uploads/s | CPU ms | spread |\n|---|---|---|---|`)
  const results = []
  for (const { rows, server, database, runs } of all) {
    const [rates, costs] = [runs.map(run => run.rate), runs.map(run => run.cpuMs)]
    const result = { store: kind, rows, rate: median(rates), cpuMs: median(costs), spread: spread(costs) }
    results.push(result)
    console.log(
      `| ${rows} | ${result.rate.toFixed(0)} | ${result.cpuMs.toFixed(2)} | ±${(result.spread * 100).toFixed(0)} % |`,
    )
    await server.stop()
    await database.close()
  }
  return results
}

const agent = new Agent({ keepAlive: true })
function heartbeat(url) {
  const began = performance.now()
  return new Promise((resolve, reject) => {
    get(`${url}/heartbeat`, { agent }, res =>
      res.resume().on('end', () => resolve(performance.now() - began)),
    ).on('error', reject)
  })
}

/** Heartbeats one after the other for so long, or until a table is empty. */
async function measurePauses(what, rows, isExpired, table) {
  const folder = join(directory, what.replace(/\W+/g, '-'), 'files')
  const database = await makeDatabase(
    `pauses_${what.replace(/\W+/g, '_')}`,
    rows,
    30,
    isExpired ? folder : undefined,
  )
  const server = await startWith(what, database)
  const times = []
  let left = rows
  const began = performance.now()
  let lastLook = began
  while (performance.now() - began < (rows === 0 ? 10_000 : 60_000) && (rows === 0 || left > 0)) {
    times.push(await heartbeat(server.url))
    await sleep(1)
    if (rows > 0 && performance.now() - lastLook > 1000) {
      left = await database.count(table)
      lastLook = performance.now()
    }
  }
  await server.stop()
  await database.close()
  times.sort((a, b) => a - b)
  const at = q => times[Math.min(Math.floor(times.length * q), times.length - 1)]
  const result = {
    ...{ store: kind, what, done: rows - left, seconds: (performance.now() - began) / 1000 },
    ...{ p50: at(0.5), p99: at(0.99), p999: at(0.999), max: at(1) },
  }
  const cells = [result.seconds, result.p50, result.p99, result.p999, result.max].map(one => one.toFixed(1))
  console.log(`| ${kind}, ${what} | ${result.done} | ${cells.join(' | ')} |`)
  return result
}

async function measureMemory() {
  const database = await makeDatabase('memory', 0, 1)
  const server = await startWith('memory', database)
  const samples = []
  const began = performance.now()
  let done = 0
  while (performance.now() - began < soakS * 1000) {
    await upload(server, { requests: 100, size: 10 * 1024 })
    done += 100 * CLIENTS
    samples.push([done, Math.round(await server.memory('VmRSS'))])
  }
  await server.stop()
  await database.close()
  console.log(`\nMemory after uploads: ${samples.map(([n, mb]) => `${n}: ${mb} MB`).join(', ')}`)
  return samples
}

try {
  const growth = values.rows === '' ? [] : await measureGrowth()
  const pauses = []
  if (old > 0) {
    console.log(
      '\n| Heartbeat | rows | s | median ms | p99 | p99.9 | longest |\n|---|---|---|---|---|---|---|',
    )
    pauses.push(await measurePauses('idle', 0, false, 'uploads'))
    pauses.push(await measurePauses('old jobs', old, false, 'uploads'))
    pauses.push(await measurePauses('expired files', Math.ceil(old / 10), true, 'objects'))
  }
  const memory = soakS > 0 ? await measureMemory() : []
  const rows = { growth, pauses, memory }
  const parts = { growth: isPostgres ? 'growthPostgres' : 'growth', pauses: 'pauses', memory: 'memory' }
  for (const [part, name] of Object.entries(parts))
    if (values.json && rows[part].length > 0) await saveResults(values.json, name, { [part]: rows[part] })
} finally {
  client.stop()
  agent.destroy()
  await rm(directory, { recursive: true, force: true })
}
