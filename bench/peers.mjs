/**
 * Compares the same uploads to upload-server, to the programs people come from, to
 * Express + multer and to the baselines; then upload-server and Express + multer on several versions of Node. In turns.
 *
 * Usage: npm run build && node bench/peers.mjs [--picgo PACKAGE] [--piclist CHECKOUT] [--node PATH,PATH]
 *        [--ms 700] [--rounds 5] [--json FILE]
 */
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { takeMemory } from './memory.mjs'
import { saveResults } from './results.mjs'
import { CONTENDERS, peer, startClient, startServer } from './servers.mjs'
import { median } from './statistics.mjs'

const KB = 1024
const LOADS = [
  { name: '10 KB, 16 clients', size: 10 * KB, clients: 16 },
  { name: '100 KB, 1 client', size: 100 * KB, clients: 1 },
  { name: '100 KB, 16 clients', size: 100 * KB, clients: 16 },
  { name: '5 MB, 4 clients', size: 5 * KB * KB, clients: 4 },
]

const text = value => ({ type: 'string', default: value })
const { values } = parseArgs({
  options: {
    picgo: { type: 'string' },
    piclist: { type: 'string' },
    node: text(''),
    ms: text('700'),
    rounds: text('5'),
    json: { type: 'string' },
  },
})
const [ms, rounds] = [values.ms, values.rounds].map(Number)
const directory = await mkdtemp(join(tmpdir(), 'bench-peers-'))
const settings = { directory, isPinned: true }
const client = startClient(true)

const { ours, recorded, express, busboy, hashed } = CONTENDERS
const others = [ours, recorded, express, hashed, busboy]
if (values.picgo) others.push(peer('PicGo', 'picgo', values.picgo))
if (values.piclist) others.push(peer('PicList', 'piclist', values.piclist))
const nodes = [process.execPath, ...values.node.split(',').filter(Boolean)].flatMap(node => {
  const version = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()
  return [ours, recorded].map(one => ({ ...one, name: `${one.name}, Node ${version.slice(1)}`, node }))
})

/** @returns for each load and contender: uploads/s, processor ms of an upload, and wrong responses */
async function measure(contenders) {
  const all = []
  for (const contender of contenders) {
    const server = await startServer(contender, settings)
    const common = { kind: 'upload', url: server.url, verify: 'one', wholeBody: contender.wholeBody }
    // Until V8 has compiled what a server runs all day, which takes it longer since Node 24.
    await client.run({ ...common, size: 100 * KB, clients: 16, requests: 2500 })
    await server.emptyFiles()
    all.push({ contender, server, common, runs: LOADS.map(() => []) })
  }
  for (let round = 0; round < rounds; round++) {
    for (const [index, { name, ...load }] of LOADS.entries()) {
      for (const { server, common, runs } of all) {
        await takeMemory()
        const before = await server.cpuMs()
        const result = await client.run({ ...common, ...load, ms })
        const cpuMs = (await server.cpuMs()) - before
        runs[index].push({ ...result, cpuMs })
        await server.emptyFiles()
      }
    }
  }
  const rows = []
  for (const [index, { name: load }] of LOADS.entries()) {
    for (const { contender, runs } of all) {
      const ofLoad = runs[index]
      const sum = what => ofLoad.reduce((total, run) => total + run[what], 0)
      const rate = median(ofLoad.map(run => run.done / run.seconds))
      const wrong = ofLoad.reduce((total, run) => total + run.failures.length, 0)
      rows.push({
        load,
        name: contender.name,
        rate,
        cpuMs: sum('cpuMs') / sum('done'),
        wrong,
        done: sum('done'),
      })
    }
  }
  for (const { server } of all) await server.stop()
  print(rows)
  return rows
}

function print(rows) {
  console.log('\n| Load | Server | uploads/s | CPU ms | wrong |\n|---|---|---|---|---|')
  for (const { load, name, rate, cpuMs, wrong } of rows)
    console.log(`| ${load} | ${name} | ${rate.toFixed(1)} | ${cpuMs.toFixed(2)} | ${wrong} |`)
}

try {
  const peers = await measure(others)
  if (values.json) await saveResults(values.json, 'peers', peers)
  const versions = values.node === '' ? [] : await measure(nodes)
  if (values.json && values.node !== '') await saveResults(values.json, 'nodes', versions)
} finally {
  client.stop()
  await rm(directory, { recursive: true, force: true })
}
