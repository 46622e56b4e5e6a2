/** What a server costs beside its work: time to start, memory at rest and at its peak. */
import { setTimeout as sleep } from 'node:timers/promises'
import { startServer } from './servers.mjs'
import { median } from './statistics.mjs'

const MB = 1024 * 1024
/** Until what is loaded behind the first answer is there. */
const SETTLE_MS = 1500
const START = 'start to first heartbeat, ms'
const LISTENING = 'start to "Listening", ms'
const FIRST = 'first upload after the start, 100 KB, ms'
const HUNDREDTH = 'hundredth upload after the start, 100 KB, ms'
const IDLE = 'idle memory, MB'

/** Each on a server of its own. */
const PEAKS = [
  { name: 'peak memory, 50 clients of 5 MB, MB', size: 5 * MB, clients: 50 },
  { name: 'peak memory, 50 clients of 20 MB, MB', size: 20 * MB, clients: 50, isLong: true },
  { name: 'peak memory, one file of 250 MB, MB', size: 250 * MB, clients: 1 },
]

/** @returns rows: a name, `results` by the key of the contender, undefined when an answer was wrong, and `failures` */
export async function measureProcesses(contenders, client, settings) {
  const peaks = PEAKS.filter(({ name, isLong }) => settings.only.test(name) && !(isLong && settings.isQuick))
  return [
    ...(await measureStarts(contenders, client, settings)),
    ...(await measurePeaks(peaks, contenders, client, settings)),
  ]
}

async function measureStarts(contenders, client, settings) {
  const rows = [START, LISTENING, FIRST, HUNDREDTH, IDLE].map(name => ({ name, results: {}, failures: [] }))
  const wanted = rows.filter(({ name }) => settings.only.test(name))
  if (wanted.length === 0) return []
  const [starts, listening, first, hundredth, idle] = rows
  const times = {}
  for (let round = 0; round < settings.rounds; round++) {
    settings.note(`start: round ${round + 1} of ${settings.rounds}`)
    for (const [key, contender] of Object.entries(contenders)) {
      const server = await startServer(contender, settings)
      if (round === 0 && wanted.includes(idle)) {
        await sleep(SETTLE_MS)
        idle.results[key] = await server.memory('VmRSS')
      }
      const { wholeBody } = contender
      const upload = requests =>
        client.run({
          kind: 'upload',
          url: server.url,
          size: 100 * 1024,
          clients: 1,
          requests,
          wholeBody,
          verify: 'one',
        })
      const { startMs, listeningMs } = server
      const { p50: firstMs, failures } = await upload(1)
      await upload(98)
      const { p50: hundredthMs } = await upload(1)
      first.failures.push(...failures.map(failure => `${contender.name}: ${failure}`))
      times[key] ??= []
      times[key].push({ startMs, listeningMs, firstMs, hundredthMs })
      await server.stop()
    }
  }
  for (const key in times) {
    starts.results[key] = median(times[key].map(({ startMs }) => startMs))
    listening.results[key] = median(times[key].map(({ listeningMs }) => listeningMs))
    first.results[key] = median(times[key].map(({ firstMs }) => firstMs))
    hundredth.results[key] = median(times[key].map(({ hundredthMs }) => hundredthMs))
  }
  return wanted
}

async function measurePeaks(peaks, contenders, client, settings) {
  const rows = []
  for (const { name, size, clients } of peaks) {
    settings.note(name)
    const row = { name, results: {}, failures: [] }
    for (const [key, contender] of Object.entries(contenders)) {
      const server = await startServer(contender, settings)
      const { wholeBody } = contender
      const load = { kind: 'upload', url: server.url, size, clients, requests: 1, wholeBody, verify: 'one' }
      const { failures } = await client.run(load)
      if (failures.length === 0) row.results[key] = await server.memory('VmHWM')
      row.failures.push(...failures.map(failure => `${contender.name}: ${failure}`))
      await server.stop()
    }
    rows.push(row)
  }
  return rows
}
