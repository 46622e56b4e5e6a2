/**
 * Counts what upload-server asks of the system for one upload: `node bench/system-calls.mjs`, once it is built. Needs strace.
 * The counts of files hardly depend on how busy the machine is; those of threads and sockets do.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CONTENDERS, startClient, startServer } from './servers.mjs'

const KB = 1024
const LOADS = [
  { name: '100 KB, 16 clients', size: 100 * KB, clients: 16, requests: 20 },
  { name: '5 MB, 4 clients', size: 5 * KB * KB, clients: 4, requests: 5 },
]
const WANTED = { folder: CONTENDERS.ours, durable: CONTENDERS.synced }

const directory = await mkdtemp(join(tmpdir(), 'bench-'))
const client = startClient(false)
try {
  for (const [title, contender] of Object.entries(WANTED)) {
    const server = await startServer(contender, { directory, isPinned: false })
    for (const { name, ...load } of LOADS) {
      const send = () => client.run({ ...load, kind: 'upload', url: server.url, verify: 'one' })
      await send() // what is loaded and made once
      print(`${title}, ${name}`, await countCalls(server.pid, send))
    }
    await server.stop()
  }
} finally {
  client.stop()
  await rm(directory, { recursive: true, force: true })
}

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
