/** Rates under load: every contender in turn, round after round, so that what disturbs the machine disturbs all. */
import { randomBytes } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { takeMemory } from './memory.mjs'
import { startServer } from './servers.mjs'
import { median } from './statistics.mjs'

const KB = 1024
const MB = 1024 * KB
const LIST_LENGTH = 4
const FORM_LENGTH = 50
const SLOW = { pieces: 10, pauseMs: 100, requests: 1 }

const clientsOf = count => `${count} ${count === 1 ? 'client' : 'clients'}`
const uploads = (label, size, clients) =>
  clients.map(count => ({ name: `${label}, ${clientsOf(count)}`, kind: 'upload', size, clients: count }))

/** In the order of the tables. */
const UPLOADS = [
  ...uploads('10 KB', 10 * KB, [1, 16, 64]),
  ...uploads('100 KB', 100 * KB, [1, 16, 64]),
  ...uploads('5 MB', 5 * MB, [1, 4, 16, 64]),
  ...uploads('200 MB', 200 * MB, [1, 16, 64]),
]
export const FOLDER_LOADS = [
  { name: 'heartbeat, 16 clients', kind: 'heartbeat', clients: 16 },
  ...UPLOADS,
  { name: `list of ${LIST_LENGTH} paths of 100 KB, 16 clients`, kind: 'list', clients: 16 },
  ...uploads(`form of ${FORM_LENGTH} files of 10 KB`, 10 * KB, [1, 16]).map(load => ({
    ...load,
    files: FORM_LENGTH,
  })),
  // Each sends one file within a second, so the rate is that of the clients. Processor time is what counts.
  { ...SLOW, name: `100 KB, ${clientsOf(1000)}, slow`, kind: 'upload', size: 100 * KB, clients: 1000 },
]
export const S3_LOADS = UPLOADS.map(load => ({ ...load, name: `S3, ${load.name}` }))
/** Those of `--quick`. */
const QUICK = /heartbeat|^(?:S3, )?(?:10 KB, 16|100 KB, (?:1|16) |5 MB, 4)|list/
/** Some thousand requests, until the machine code is there that a server runs for the rest of its life. */
const WARM_UP = { kind: 'upload', size: 100 * KB, clients: 16, verify: 'one' }
/**
 * From this on each client sends one file in a round, or a disk would be full, and there are few rounds: one takes up to
 * half a minute of each contender, and what disturbs the machine for a moment weighs little in it.
 */
const LARGE_BYTES = 16 * 200 * MB
const LARGE_ROUNDS = 2

const isLarge = ({ size = 0, clients }) => size * clients >= LARGE_BYTES

/** The loads that were asked for. */
export function choose(loads, settings) {
  return loads.filter(({ name }) => settings.only.test(name) && (!settings.isQuick || QUICK.test(name)))
}

/**
 * @returns one entry a load; `results` by the key of the contender: `rates` of all rounds a second, their `median`,
 *   `cpuMs` of a request, `p50` and `p99` of its time in ms, and `failures`
 */
export async function measureLoads(title, wanted, contenders, client, settings) {
  if (wanted.length === 0) return []
  const needsPaths = wanted.some(load => load.kind === 'list')
  const paths = needsPaths ? await makeSources(settings.directory) : []
  const loads = wanted.map(load => ({ ...load, results: {} }))
  const servers = {}

  /** What the warm-up did not touch comes in round -1, which is not counted. Its answers must be right all the same. */
  async function measureRounds(measured, first, end) {
    for (let round = first; round < end; round++) {
      if (measured.length > 0) settings.note(`${title}: round ${round + 1} of ${end}`)
      for (const { results, ...load } of measured) {
        for (const [key, server] of Object.entries(servers)) {
          if (load.kind === 'list' && contenders[key].onlyUploads) continue
          if (!settings.isQuick) await takeMemory(isLarge(load) ? LARGE_BYTES : undefined)
          const before = await server.cpuMs()
          const more = { url: server.url, ms: settings.ms, verify: settings.verify, paths }
          const result = await client.run(loadFor(load, contenders[key], more))
          const cpuMs = (await server.cpuMs()) - before
          await server.emptyFiles()
          results[key] ??= { rounds: [], failures: [] }
          results[key].failures.push(...result.failures)
          if (round >= 0) results[key].rounds.push({ ...result, cpuMs })
        }
      }
    }
  }

  try {
    for (const [key, contender] of Object.entries(contenders)) {
      settings.note(`${title}: warming ${contender.name} up`)
      servers[key] = await startServer(contender, settings)
      await client.run(
        loadFor(WARM_UP, contender, { requests: settings.warmUpRequests, url: servers[key].url }),
      )
      await servers[key].emptyFiles()
    }
    // Files of 200 MB come last: after them, V8 compiles anew what small files need, which takes it a second.
    const small = loads.filter(({ size = 0 }) => size < 200 * MB)
    const big = loads.filter(load => !small.includes(load) && !isLarge(load))
    await measureRounds(small, -1, settings.rounds)
    await measureRounds(big, -1, settings.rounds)
    await measureRounds(loads.filter(isLarge), 0, Math.min(LARGE_ROUNDS, settings.rounds))
  } finally {
    for (const server of Object.values(servers)) await server.stop()
  }
  return loads.map(({ results, name, kind, size, clients }) => {
    const entries = Object.entries(results).map(([key, result]) => [key, summarise(result)])
    return { name, kind, size, clients, results: Object.fromEntries(entries) }
  })
}

function loadFor(load, { wholeBody, sizeOnly }, more) {
  return {
    ...more,
    ...load,
    ...(load.kind === 'list' ? {} : { paths: undefined }),
    ...(isLarge(load) && { requests: 1 }),
    wholeBody,
    sizeOnly,
  }
}

async function makeSources(directory) {
  const sources = join(directory, 'sources')
  await mkdir(sources, { recursive: true })
  const paths = Array.from({ length: LIST_LENGTH }, (_, index) => join(sources, `${index}.bin`))
  for (const path of paths) await writeFile(path, randomBytes(100 * KB))
  return paths
}

function summarise({ rounds, failures }) {
  const rates = rounds.map(round => round.done / round.seconds)
  const sum = member => rounds.reduce((total, round) => total + round[member], 0)
  return {
    rates,
    median: median(rates),
    cpuMs: sum('cpuMs') / sum('done'),
    p50: median(rounds.map(round => round.p50)),
    p99: median(rounds.map(round => round.p99)),
    failures,
  }
}
