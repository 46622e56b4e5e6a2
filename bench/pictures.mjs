/**
 * What it costs to convert images: a JPEG of 12 megapixels to WebP, 1600 pixels wide, quality 80. By upload-server, by
 * sharp-cli (one process for each image) and by PicList, one image and 16 at once. Prints the time of all and the peak
 * memory of all processes.
 *
 * Usage: npm run build && node bench/pictures.mjs [--sharp-cli FOLDER] [--piclist CHECKOUT] [--rounds 3] [--json FILE]
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import sharp from 'sharp'
import { saveResults } from './results.mjs'
import { startServer, uploadServer } from './servers.mjs'
import { median } from './statistics.mjs'

const WIDTH = 1600
const QUALITY = 80

const { values } = parseArgs({
  options: {
    'sharp-cli': { type: 'string' },
    piclist: { type: 'string' },
    rounds: { type: 'string', default: '3' },
    json: { type: 'string' },
  },
})
const directory = await mkdtemp(join(tmpdir(), 'bench-pictures-'))
const source = join(directory, 'photo.jpg')
const noise = { type: 'gaussian', mean: 128, sigma: 40 }
await sharp({ create: { width: 1000, height: 750, channels: 3, noise } })
  .resize(4000, 3000)
  .jpeg({ quality: 90 })
  .toFile(source)
const photo = await readFile(source)

/** Memory of a process and all that it started, MB. */
async function memoryOf(pid) {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  let sum = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1024
  for (const task of await readdir(`/proc/${pid}/task`).catch(() => [])) {
    const children = await readFile(`/proc/${pid}/task/${task}/children`, 'utf8').catch(() => '')
    for (const child of children.split(' ').filter(Boolean)) sum += await memoryOf(child)
  }
  return sum
}

/** @param pids of what works, as it grows */
async function measure(pids, work) {
  let peak = 0
  let isOver = false
  const watch = async () => {
    while (!isOver) {
      let sum = 0
      for (const pid of pids) sum += await memoryOf(pid)
      peak = Math.max(peak, sum)
      await new Promise(resolve => setTimeout(resolve, 10))
    }
  }
  const watching = watch()
  const began = performance.now()
  await work()
  const ms = performance.now() - began
  isOver = true
  await watching
  return { ms, peak }
}

const times = (count, work) => Promise.all(Array.from({ length: count }, (_, index) => work(index)))

async function startOurs() {
  const images = { format: 'webp', quality: QUALITY, resize: { width: WIDTH }, timeout: '120s' }
  const server = await startServer(
    uploadServer('upload-server', { local: { durable: false } }, undefined, [], { images }),
    { directory, isPinned: false },
  )
  let counter = 0
  const one = async () => {
    const form = new FormData()
    form.append('file', new Blob([photo]), `photo-${++counter}.jpg`)
    const res = await fetch(`${server.url}/upload`, { method: 'POST', body: form })
    const { result } = await res.json()
    const stored = await sharp(Buffer.from(await (await fetch(result[0])).arrayBuffer())).metadata()
    if (stored.format !== 'webp' || stored.width !== WIDTH) throw new Error('Another image was stored.')
  }
  return { pids: [server.pid], run: count => times(count, one), stop: () => server.stop() }
}

async function startSharpCli(folder) {
  const pids = []
  const one = async index => {
    const output = join(directory, `out-${index}.webp`)
    const args = ['-i', source, '-o', output, '-f', 'webp', '-q', String(QUALITY), 'resize', String(WIDTH)]
    const child = spawn(process.execPath, [join(folder, 'node_modules/sharp-cli/bin/cli.js'), ...args], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    pids.push(child.pid)
    const [code] = await once(child, 'exit')
    const { format, width } = await sharp(output).metadata()
    if (code !== 0 || format !== 'webp' || width !== WIDTH) throw new Error('sharp-cli failed.')
    await rm(output)
  }
  return { pids, run: count => times(count, one), stop: () => {} }
}

/** Through its library: its server returns files of other clients for requests at the same time. */
async function startPicList(checkout) {
  const script = `
    const { PicGo } = require(${JSON.stringify(checkout)})
    const config = ${JSON.stringify(join(directory, 'piclist.json'))}
    process.on('message', async count => {
      const one = () => new PicGo(config).upload([${JSON.stringify(source)}])
      const results = await Promise.all(Array.from({ length: count }, one))
      process.send(results.every(result => Array.isArray(result) && result[0]?.imgUrl?.endsWith('.webp')))
    })`
  const compress = {
    ...{ quality: QUALITY, isConvert: true, convertFormat: 'webp' },
    ...{ isReSize: true, reSizeWidth: WIDTH, reSizeHeight: 0 },
  }
  const local = { path: join(directory, 'piclist') }
  await writeFile(
    join(directory, 'piclist.json'),
    JSON.stringify({
      picBed: { uploader: 'local', current: 'local', local },
      buildIn: { compress },
      silent: true,
    }),
  )
  const child = spawn(process.execPath, ['-e', script], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: { ...process.env, HOME: directory },
  })
  const run = async count => {
    child.send(count)
    const [isRight] = await once(child, 'message')
    if (!isRight) throw new Error('PicList failed.')
  }
  return { pids: [child.pid], run, stop: () => child.kill() }
}

const programs = [
  ['upload-server', () => startOurs()],
  ...(values['sharp-cli'] ? [['sharp-cli', () => startSharpCli(values['sharp-cli'])]] : []),
  ...(values.piclist ? [['PicList', () => startPicList(values.piclist)]] : []),
]
try {
  const rows = []
  console.log('| Program | at once | ms | ms an image | peak MB |\n|---|---|---|---|---|')
  for (const atOnce of [1, 16]) {
    const all = []
    for (const [name, start] of programs) {
      const program = await start()
      await program.run(1)
      all.push({ name, program, runs: [] })
    }
    for (let round = 0; round < Number(values.rounds); round++)
      for (const { program, runs } of all) {
        program.pids.splice(1)
        runs.push(await measure(program.pids, () => program.run(atOnce)))
      }
    for (const { name, program, runs } of all) {
      const row = {
        ...{ name, atOnce },
        ...{ ms: median(runs.map(run => run.ms)), peakMb: Math.max(...runs.map(run => run.peak)) },
      }
      rows.push(row)
      console.log(
        `| ${name} | ${atOnce} | ${row.ms.toFixed(0)} | ${(row.ms / atOnce).toFixed(0)} | ${row.peakMb.toFixed(0)} |`,
      )
      await program.stop()
    }
  }
  if (values.json) await saveResults(values.json, 'pictures', rows)
} finally {
  await rm(directory, { recursive: true, force: true })
}
