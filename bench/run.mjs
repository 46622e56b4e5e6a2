/** `npm run bench`: see README.md. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { measureLoads } from './loads.mjs'
import { measurePeaks, measureStarts } from './process.mjs'
import { printReport } from './report.mjs'
import { CONTENDERS, onS3, otherCheckout, startClient } from './servers.mjs'

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    ms: { type: 'string' },
    only: { type: 'string' },
    verify: { type: 'boolean', default: false },
    json: { type: 'string' },
    directory: { type: 'string' },
    against: { type: 'string' },
    s3: { type: 'string', default: process.env.BENCH_S3 },
    'no-pin': { type: 'boolean', default: false },
  },
})

const settings = {
  isQuick: options.quick,
  isPinned: !options['no-pin'],
  rounds: Number(options.rounds ?? (options.quick ? 3 : 7)),
  ms: Number(options.ms ?? (options.quick ? 120 : 1000)),
  warmUpMs: options.quick ? 800 : 5000,
  only: new RegExp(options.only ?? '', 'i'),
  verify: options.verify ? 'all' : 'one',
  directory: await mkdtemp(join(options.directory ?? tmpdir(), 'bench-')),
}
const contenders = {
  ...CONTENDERS,
  ...(options.against && { other: otherCheckout(options.against) }),
  ...(options.s3 && { s3: onS3(options.s3) }),
}
const client = startClient(settings.isPinned)
try {
  const report = {
    node: process.version,
    cpu: `${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}`,
    time: new Date().toISOString(),
    settings: { ...settings, only: options.only, directory: undefined },
    loads: await measureLoads(contenders, client, settings),
    starts: await measureStarts(contenders, settings),
    peaks: await measurePeaks(contenders, client, settings),
  }
  printReport(report)
  if (options.json) await writeFile(options.json, `${JSON.stringify(report, null, 2)}\n`)
  if (report.loads.some(load => Object.values(load.results).some(result => result.failures.length > 0))) {
    process.exitCode = 1
  }
} finally {
  client.stop()
  await rm(settings.directory, { recursive: true, force: true })
}
