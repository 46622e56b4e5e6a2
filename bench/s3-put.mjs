/**
 * What passing a file on to S3 costs, without the request that brought it: `npm run build && node bench/s3-put.mjs`,
 * with the folder of another checkout, built, for comparison. Prints the processor time of one put.
 */
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { median } from './statistics.mjs'

const ROUNDS = 5
const root = process.argv[2] ? resolve(process.argv[2]) : fileURLToPath(new URL('..', import.meta.url))
const { s3 } = await import(join(root, 'build/providers/s3/index.js'))

const directory = await mkdtemp(join(tmpdir(), 'bench-s3-put-'))
const standIn = spawn(process.execPath, [fileURLToPath(new URL('s3-server.mjs', import.meta.url))], {
  stdio: ['ignore', 'pipe', 'inherit'],
})
const [line] = await once(standIn.stdout, 'data')
const options = { endpoint: JSON.parse(line).url, bucket: 'bench', urlPrefix: 'https://img.example.com' }
const config = s3.config.parse({ ...options, accessKeyId: 'id', secretAccessKey: 'secret' })
const target = await s3.open(config, { name: 'Default', warn: console.error })
try {
  await measure('100 KB in memory, 16 at a time', inMemory(randomBytes(100 * 1024)), 3000, 16)
  await measure('5 MB in a file, 4 at a time', await inFile(randomBytes(5 * 1024 * 1024)), 100, 4)
} finally {
  await target.close()
  standIn.kill()
  await rm(directory, { recursive: true })
}

async function measure(name, object, times, clients) {
  await putMany(object, times, clients)
  const rounds = []
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage()
    await putMany(object, times, clients)
    const { user, system } = process.cpuUsage(before)
    rounds.push((user + system) / 1000 / times)
  }
  console.log(`${name}: ${median(rounds).toFixed(2)} ms`)
}

async function putMany(object, times, clients) {
  let left = times
  const client = async () => {
    while (left-- > 0) await target.put(object, new AbortController().signal)
  }
  await Promise.all(Array.from({ length: clients }, client))
}

function inMemory(bytes) {
  return {
    key: 'a/picture.png',
    size: bytes.length,
    contentType: 'image/png',
    sha256: createHash('sha256').update(bytes).digest('hex'),
    stream: () => Readable.from([bytes], { objectMode: false }),
    bytes: async () => bytes,
  }
}

async function inFile(bytes) {
  const path = join(directory, 'file')
  await writeFile(path, bytes)
  const stream = () => createReadStream(path, { highWaterMark: 256 * 1024 })
  return { ...inMemory(bytes), path, stream, bytes: () => readFile(path) }
}
