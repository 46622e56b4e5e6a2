/** What a server costs beside its work: time to start, memory at rest and at its peak. */
import { setTimeout as sleep } from 'node:timers/promises'
import { startServer } from './servers.mjs'
import { median } from './statistics.mjs'

const MB = 1024 * 1024
/** Until what is loaded behind the first answer is there. */
const SETTLE_MS = 2000

/** Each on a server of its own. */
const PEAKS = [
  { name: 'peak memory, 50 clients × 5 MB', size: 5 * MB, clients: 50, requests: 1 },
  { name: 'peak memory, 50 clients × 20 MB', size: 20 * MB, clients: 50, requests: 1 },
  { name: 'peak memory, one file of 250 MB', size: 250 * MB, clients: 1, requests: 1 },
]

/** @returns by the key of the contender: `startMs` of every round, their median, and `idleMb` */
export async function measureStarts(contenders, settings) {
  if (!settings.only.test('start idle')) return {}
  const results = {}
  for (let round = 0; round < settings.rounds; round++) {
    for (const [key, contender] of Object.entries(contenders)) {
      const server = await startServer(contender, settings)
      results[key] ??= { rounds: [] }
      const result = results[key]
      result.rounds.push(server.startMs)
      if (round === 0) {
        await sleep(SETTLE_MS)
        result.idleMb = await server.memory('VmRSS')
      }
      await server.stop()
    }
  }
  for (const result of Object.values(results)) result.startMs = median(result.rounds)
  return results
}

/** @returns one entry a load; `results` by the key of the contender, MB, undefined when an answer was wrong */
export async function measurePeaks(contenders, client, settings) {
  const peaks = PEAKS.filter(({ name }) => settings.only.test(name)).map(load => ({ ...load, results: {} }))
  for (const { results, name, ...load } of peaks) {
    for (const [key, contender] of Object.entries(contenders)) {
      const server = await startServer(contender, settings)
      const { url } = server
      const { wholeBody } = contender
      const { failures } = await client.run({ ...load, kind: 'upload', url, wholeBody, verify: 'one' })
      results[key] = failures.length === 0 ? await server.memory('VmHWM') : undefined
      await server.stop()
    }
  }
  return peaks
}
