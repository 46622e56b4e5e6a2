/**
 * Counts what upload-server asks of the system for one upload: `node bench/system-calls.mjs [--json]`, once it is built. With
 * `--promises`, it counts promises and commits of SQLite instead. Needs Linux, and strace for system calls.
 * The counts of files hardly depend on how busy the machine is; those of threads and sockets do.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { CONTENDERS, startClient, startServer } from './servers.mjs'

const KB = 1024
const countsPromises = process.argv.includes('--promises')
const LOADS = [
  ...(countsPromises ? [{ name: '100 KB, 1 client', size: 100 * KB, clients: 1, requests: 200 }] : []),
  { name: '100 KB, 16 clients', size: 100 * KB, clients: 16, requests: 20 },
  { name: '5 MB, 4 clients', size: 5 * KB * KB, clients: 4, requests: 5 },
]
const WANTED = { folder: CONTENDERS.ours, durable: CONTENDERS.synced }

const directory = await mkdtemp(join(tmpdir(), 'bench-'))
if (countsPromises) {
  process.env.NODE_OPTIONS = `--import ${new URL('count.mjs', import.meta.url)}`
  process.env.COUNTS = join(directory, 'counts.json')
}
const client = startClient(false)
const results = []
try {
  for (const [title, contender] of Object.entries(WANTED)) {
    const server = await startServer(contender, { directory, isPinned: false })
    for (const { name, ...load } of LOADS) {
      const send = () => client.run({ ...load, kind: 'upload', url: server.url, verify: 'one' })
      await send() // what is loaded and made once
      const count = countsPromises ? countPromises : countCalls
      results.push({ name: `${title}, ${name}`, calls: await count(server.pid, send) })
    }
    await server.stop()
  }
} finally {
  client.stop()
  await rm(directory, { recursive: true, force: true })
}
if (process.argv.includes('--json')) console.log(JSON.stringify(results))
else for (const { name, calls } of results) print(name, calls)

async function countCalls(pid, send) {
  const output = join(directory, 'strace')
  const tracer = spawn('strace', ['-c', '-f', '-o', output, '-p', String(pid)])
  const ended = once(tracer, 'exit')
  // Says on standard error that it has attached itself.
  await Promise.race([once(tracer.stderr, 'data'), ended])
  const { done, failures } = await send()
  tracer.kill('SIGINT')
  await ended
  if (failures.length > 0) throw new Error(failures[0])
  return readCounts(await readFile(output, 'utf8'), done)
}

/** @returns promises and commits for one upload */
async function countPromises(pid, send) {
  const read = async () => {
    await rm(process.env.COUNTS, { force: true })
    process.kill(pid, 'SIGUSR2')
    for (;;) {
      await sleep(20)
      const text = await readFile(process.env.COUNTS, 'utf8').catch(() => '')
      if (text !== '') return JSON.parse(text)
    }
  }
  const before = await read()
  const { done, failures } = await send()
  if (failures.length > 0) throw new Error(failures[0])
  const after = await read()
  return Object.fromEntries(Object.keys(after).map(name => [name, (after[name] - before[name]) / done]))
}

/** @returns {Record<string, number>} calls for one upload, by name */
function readCounts(table, uploads) {
  const rows = table.matchAll(/^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?(\w+)$/gm)
  const counts = [...rows].map(([, count, name]) => [name, Number(count) / uploads])
  return Object.fromEntries(counts.filter(([name]) => name !== 'total'))
}

function print(title, calls) {
  console.log(title)
  for (const [name, count] of Object.entries(calls).sort((a, b) => b[1] - a[1])) {
    if (count >= 0.05) console.log(`  ${count.toFixed(1).padStart(6)} ${name}`)
  }
}
