/** Rates under load: every contender in turn, round after round, so that what disturbs the machine disturbs all. */

import { randomBytes } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startServer } from './servers.mjs'
import { median } from './statistics.mjs'

const KB = 1024
const MB = 1024 * KB
const LIST_LENGTH = 4

const uploads = (label, size, clients) =>
  clients.map(count => ({ name: `${label}, ${clientsOf(count)}`, kind: 'upload', size, clients: count }))
const clientsOf = count => `${count} ${count === 1 ? 'client' : 'clients'}`

/** In the order of the table. */
const LOADS = [
  { name: 'heartbeat, 16 clients', kind: 'heartbeat', clients: 16 },
  ...uploads('10 KB', 10 * KB, [1, 16, 64]),
  ...uploads('100 KB', 100 * KB, [1, 16, 64]),
  ...uploads('5 MB', 5 * MB, [1, 4, 16, 64]),
  ...uploads('200 MB', 200 * MB, [1, 4]),
  { name: `list of ${LIST_LENGTH} paths of 100 KB, 16 clients`, kind: 'list', clients: 16 },
]
/** Until the machine code is there that a server runs for the rest of its life. */
const WARM_UP = { kind: 'upload', size: 100 * KB, clients: 16, verify: 'one' }
/** What `--quick` leaves out: too long to say anything in its time. */
const LONG = /^200 MB|^5 MB, (16|64)|64 clients/

/**
 * @returns one entry a load; `results` by the key of the contender: `rates` of all rounds a second, their `median`,
 *   `cpuMs` of a request, `p50` and `p99` of its time in ms, and `failures`
 */
export async function measureLoads(contenders, client, settings) {
  const paths = await makeSources(settings.directory)
  const wanted = LOADS.filter(
    ({ name }) => settings.only.test(name) && !(settings.isQuick && LONG.test(name)),
  )
  const loads = wanted.map(load => ({ ...load, ...(load.kind === 'list' && { paths }), results: {} }))
  if (loads.length === 0) return []
  const servers = {}
  try {
    for (const [key, contender] of Object.entries(contenders)) {
      servers[key] = await startServer(contender, settings)
      await client.run({ ...WARM_UP, ms: settings.warmUpMs, url: servers[key].url })
      await servers[key].emptyFiles()
    }
    for (let round = -1; round < settings.rounds; round++) {
      for (const load of loads) {
        for (const [key, server] of Object.entries(servers)) {
          if (load.kind === 'list' && contenders[key].onlyUploads) continue
          const before = await server.cpuMs()
          const result = await client.run({
            ...load,
            results: undefined,
            url: server.url,
            ms: settings.ms,
            verify: settings.verify,
            wholeBody: contenders[key].wholeBody,
          })
          const cpuMs = (await server.cpuMs()) - before
          await server.emptyFiles()
          // The first round is not counted, for what the warm-up did not touch.
          if (round >= 0) note(load.results, key, { ...result, cpuMs })
        }
      }
    }
  } finally {
    for (const server of Object.values(servers)) await server.stop()
  }
  return loads.map(({ results, name, kind, size, clients }) => {
    return { name, kind, size, clients, results: mapValues(results, summarise) }
  })
}

async function makeSources(directory) {
  const sources = join(directory, 'sources')
  await mkdir(sources)
  const paths = Array.from({ length: LIST_LENGTH }, (_, index) => join(sources, `${index}.bin`))
  for (const path of paths) await writeFile(path, randomBytes(100 * KB))
  return paths
}

function note(results, key, result) {
  results[key] ??= []
  results[key].push(result)
}

function summarise(rounds) {
  const rates = rounds.map(round => round.done / round.seconds)
  const sum = member => rounds.reduce((total, round) => total + round[member], 0)
  return {
    rates,
    median: median(rates),
    cpuMs: sum('cpuMs') / sum('done'),
    p50: median(rounds.map(round => round.p50)),
    p99: median(rounds.map(round => round.p99)),
    failures: rounds.flatMap(round => round.failures),
  }
}

function mapValues(object, map) {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value)]))
}
