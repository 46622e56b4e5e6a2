/**
 * What passing a file on to S3 costs, without the request that brought it: `npm run build && node bench/s3-put.mjs`,
 * with the folder of another checkout, built, for comparison. Prints the processor time of one put.
 */
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { median } from './statistics.mjs'

const ROUNDS = 5
const root = process.argv[2] ? resolve(process.argv[2]) : fileURLToPath(new URL('..', import.meta.url))
const { inFile, inMemory } = await import(join(root, 'build/body.js'))
const { s3 } = await import(join(root, 'build/providers/s3/index.js'))

const directory = await mkdtemp(join(tmpdir(), 'bench-s3-put-'))
const [small, large] = [randomBytes(100 * 1024), randomBytes(5 * 1024 * 1024)]
const path = join(directory, 'file')
await writeFile(path, large)
const standIn = spawn(process.execPath, [fileURLToPath(new URL('s3-server.mjs', import.meta.url))], {
  stdio: ['ignore', 'pipe', 'inherit'],
})
const [line] = await once(standIn.stdout, 'data')
const options = { endpoint: JSON.parse(line).url, bucket: 'bench', urlPrefix: 'https://img.example.com' }
const config = s3.config.parse({ ...options, accessKeyId: 'id', secretAccessKey: 'secret' })
const target = await s3.open(config, { name: 'Default', warn: console.error })
try {
  await measure('100 KB in memory, 16 at a time', object(inMemory(small), small), 3000, 16)
  await measure('5 MB in a file, 4 at a time', object({ ...inFile(path, large.length), path }, large), 100, 4)
} finally {
  await target.close()
  standIn.kill()
  await rm(directory, { recursive: true })
}

async function measure(name, content, times, clients) {
  await putMany(content, times, clients)
  const rounds = []
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage()
    await putMany(content, times, clients)
    const { user, system } = process.cpuUsage(before)
    rounds.push((user + system) / 1000 / times)
  }
  console.log(`${name}: ${median(rounds).toFixed(2)} ms`)
}

async function putMany(content, times, clients) {
  let left = times
  const client = async () => {
    while (left-- > 0) await target.put(content, new AbortController().signal)
  }
  await Promise.all(Array.from({ length: clients }, client))
}

function object(content, bytes) {
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  return { ...content, key: 'a/picture.png', contentType: 'image/png', sha256 }
}
