/**
 * How far servers carry: uploads to an S3 stand-in that takes its time, with so many slots, by one server or several with
 * one database. Prints the rate and the processor time of an upload, of the servers and of PostgreSQL; with --quota and --keyed
 * also beside a quota that is never used up, and beside an Idempotency-Key. Nothing is pinned to a core.
 *
 * Usage: npm run build && node bench/scale.mjs [--latency 10,60,200] [--slots 16,64,256] [--servers 1]
 *        [--store sqlite|postgres://USER:PASSWORD@HOST/DATABASE] [--clients 64] [--ms 4000] [--rounds 3]
 *        [--quota] [--keyed]
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { s3Options, startClient, startS3, startServer, timeOfPostgres, uploadServer } from './servers.mjs'
import { median } from './statistics.mjs'

const KEY = 'key-of-the-benchmark'
const SIZE = 100 * 1024

const text = value => ({ type: 'string', default: value })
const { values } = parseArgs({
  options: {
    latency: text('10,60,200'),
    slots: text('16,64,256'),
    servers: text('1'),
    store: text('sqlite'),
    clients: text('64'),
    ms: text('4000'),
    rounds: text('3'),
    quota: { type: 'boolean', default: false },
    keyed: { type: 'boolean', default: false },
  },
})
const numbers = list => list.split(',').map(Number)
const [clients, ms, rounds] = [values.clients, values.ms, values.rounds].map(Number)
let started = 0
const directory = await mkdtemp(join(tmpdir(), 'bench-scale-'))
const settings = { directory, isPinned: false }

/** Servers with one database, and clients that share them. */
async function start(endpoint, slots, count, quota) {
  const s3 = s3Options({ endpoint, bucket: 'bench', accessKeyId: 'id', secretAccessKey: 'secret' })
  const key = { name: 'bench', key: KEY, ...(quota && { quota: { files: 1_000_000_000, per: '31d' } }) }
  const more = {
    limits: { perDestination: { concurrent: slots, queued: 10_000 } },
    auth: { loopbackExempt: false, keys: [key] },
    ...(values.store !== 'sqlite' && { database: { driver: 'postgres', url: values.store } }),
  }
  const names = Array.from({ length: count }, (_, n) => `scale ${slots} ${n} ${quota} ${++started}`)
  const servers = []
  for (const name of names)
    servers.push(await startServer(uploadServer(name, { s3 }, undefined, [], more), settings))
  return servers
}

async function measure(servers, keyed) {
  const drivers = servers.map(() => startClient(false))
  const [before, there] = [await Promise.all(servers.map(server => server.cpuMs())), timeOfPostgres()]
  const results = await Promise.all(
    drivers.map((driver, n) =>
      driver.run({
        ...{
          kind: 'upload',
          url: servers[n].url,
          size: SIZE,
          ms,
          verify: 'one',
          sizeOnly: true,
          key: KEY,
          keyed,
        },
        clients: Math.ceil(clients / servers.length),
      }),
    ),
  )
  for (const driver of drivers) driver.stop()
  const after = await Promise.all(servers.map(server => server.cpuMs()))
  const [failure] = results.flatMap(result => result.failures)
  if (failure) throw new Error(failure)
  const done = results.reduce((sum, result) => sum + result.done, 0)
  const cpuMs = after.reduce((sum, one, n) => sum + one - before[n], 0)
  return {
    rate: results.reduce((sum, result) => sum + result.done / result.seconds, 0),
    cpuMs: cpuMs / done,
    databaseMs: (timeOfPostgres() - there) / 1000 / done,
    p99: Math.max(...results.map(result => result.p99)),
  }
}

console.log(
  '| Latency | Slots | Servers | With | uploads/s | CPU ms | PostgreSQL ms | p99 ms |\n|---|---|---|---|---|---|---|---|',
)
try {
  for (const latency of numbers(values.latency)) {
    const s3 = await startS3(settings, latency)
    for (const slots of numbers(values.slots)) {
      for (const count of numbers(values.servers)) {
        const kinds = ['', ...(values.quota ? ['quota'] : []), ...(values.keyed ? ['Idempotency-Key'] : [])]
        const all = []
        for (const kind of kinds)
          all.push({ kind, servers: await start(s3.url, slots, count, kind === 'quota'), runs: [] })
        for (let round = -1; round < rounds; round++) {
          for (const { kind, servers, runs } of all) {
            const run = await measure(servers, kind === 'Idempotency-Key')
            if (round >= 0) runs.push(run)
          }
        }
        for (const { kind, servers, runs } of all) {
          const [rate, cpuMs, databaseMs, p99] = ['rate', 'cpuMs', 'databaseMs', 'p99'].map(what =>
            median(runs.map(run => run[what])),
          )
          const cells = [
            latency,
            slots,
            count,
            kind,
            rate.toFixed(0),
            cpuMs.toFixed(2),
            databaseMs.toFixed(2),
            p99.toFixed(0),
          ]
          console.log(`| ${cells.join(' | ')} |`)
          for (const server of servers) await server.stop()
        }
      }
    }
    await s3.stop()
  }
} finally {
  await rm(directory, { recursive: true, force: true })
}
