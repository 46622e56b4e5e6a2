/** `npm run bench`: see README.md. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { measureCommands } from './commands.mjs'
import { choose, FOLDER_LOADS, measureLoads, S3_LOADS } from './loads.mjs'
import { measureProcesses } from './process.mjs'
import { failuresOf, printReport } from './report.mjs'
import { CONTENDERS, onS3, otherCheckout, startClient, startS3, toStandIn } from './servers.mjs'

const HELP = `npm run bench -- [options]

  --quick          fewer and shorter rows; ends within a minute on a machine that does nothing else
  --only REGEXP    rows whose name matches, such as "^100 KB", "S3, 5 MB", "heartbeat", "memory", "upload-server"
  --rounds N       how often each row is measured; default 5, with --quick 3
  --ms N           how long new requests are begun in a round; default 1000, with --quick 100
  --json FILE      all results, each round by itself
  --verify         compare every stored file instead of one for each row and round
  --against DIR    another checkout of this program, built, beside it
  --s3 URL,BUCKET,KEY,SECRET   a real S3 server beside the stand-in; also BENCH_S3
  --profile DIR    write CPU profiles of upload-server there; its rates are lower then
  --directory DIR  on the disk to measure; default: the system's for temporary files
  --no-pin         let the system place server and client on its cores
  --help`

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    rounds: { type: 'string' },
    ms: { type: 'string' },
    json: { type: 'string' },
    verify: { type: 'boolean', default: false },
    against: { type: 'string' },
    s3: { type: 'string', default: process.env.BENCH_S3 },
    profile: { type: 'string' },
    directory: { type: 'string', default: tmpdir() },
    'no-pin': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (options.help) {
  console.log(HELP)
  process.exit()
}

const settings = {
  isQuick: options.quick,
  isPinned: !options['no-pin'],
  rounds: Number(options.rounds ?? (options.quick ? 3 : 5)),
  ms: Number(options.ms ?? (options.quick ? 100 : 1000)),
  /** Of each of 16 clients. */
  warmUpRequests: options.quick ? 100 : 500,
  only: new RegExp(options.only, 'i'),
  verify: options.verify ? 'all' : 'one',
  profile: options.profile && resolve(options.profile),
  directory: await mkdtemp(join(options.directory, 'bench-')),
  /** What is being done, for whoever waits. */
  note: text => process.stderr.isTTY && process.stderr.write(`\r\x1b[K${text}`),
}
const missing = []
const client = startClient(settings.isPinned)
try {
  const loadAverage = loadavg()[0].toFixed(1)
  const folder = {
    ...without(CONTENDERS, options.quick ? ['hashed', 'recorded'] : []),
    ...(options.against && { other: otherCheckout(options.against) }),
  }
  const groups = [await measureGroup('folder', FOLDER_LOADS, folder), await measureS3()]
  const alone = without(folder, ['synced', 'raw', 'hashed', 'recorded'])
  const processes = await measureProcesses(alone, client, settings)
  const commands = await measureCommands(CONTENDERS.ours, settings)
  settings.note('')
  const report = {
    node: process.version,
    cpu: `${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}`,
    loadAverage,
    time: new Date().toISOString(),
    settings: { ...settings, only: options.only, directory: undefined },
    groups: groups.filter(({ loads }) => loads.length > 0),
    processes,
    commands,
    processNames: namesOf(alone),
    missing,
  }
  printReport(report)
  if (options.json) await writeFile(options.json, `${JSON.stringify(report, null, 2)}\n`)
  if (failuresOf(report).length > 0) process.exitCode = 1
} finally {
  client.stop()
  await rm(settings.directory, { recursive: true, force: true })
}

async function measureS3() {
  const loads = choose(S3_LOADS, settings)
  if (loads.length === 0) return { loads }
  const standIn = await startS3(settings)
  const contenders = {
    ...toStandIn(standIn.url, options.against),
    ...(options.s3 && { real: onS3(options.s3) }),
  }
  if (!options.s3) missing.push('a real S3 server: none was given with --s3.')
  try {
    return await measureGroup('S3', S3_LOADS, contenders)
  } finally {
    await standIn.stop()
  }
}

async function measureGroup(title, all, contenders) {
  const loads = await measureLoads(title, choose(all, settings), contenders, client, settings)
  return { title, loads, names: namesOf(contenders) }
}

function without(contenders, keys) {
  return Object.fromEntries(Object.entries(contenders).filter(([key]) => !keys.includes(key)))
}

function namesOf(contenders) {
  return Object.fromEntries(Object.entries(contenders).map(([key, { name }]) => [key, name]))
}
