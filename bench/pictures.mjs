/**
 * What it costs to resize and to convert an image: a JPEG of 12 megapixels, 1600 pixels wide, as JPEG and as WebP, one at a
 * time. Prints the processor time of each, with the process of the images.
 *
 * Usage: npm run build && node bench/pictures.mjs [--rounds 5]
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import sharp from 'sharp'
import { startServer, uploadServer } from './servers.mjs'
import { median } from './statistics.mjs'

const WIDTH = 1600
const { values } = parseArgs({ options: { rounds: { type: 'string', default: '5' } } })
const directory = await mkdtemp(join(tmpdir(), 'bench-pictures-'))
const noise = { type: 'gaussian', mean: 128, sigma: 40 }
const photo = await sharp({ create: { width: 1000, height: 750, channels: 3, noise } })
  .resize(4000, 3000)
  .jpeg({ quality: 90 })
  .toBuffer()

async function upload({ url }, format, name) {
  const form = new FormData()
  form.append('file', new Blob([photo]), `${name}.jpg`)
  const { result } = await (await fetch(`${url}/upload`, { method: 'POST', body: form })).json()
  const stored = await sharp(Buffer.from(await (await fetch(result[0])).arrayBuffer())).metadata()
  if (stored.format !== format || stored.width !== WIDTH) throw new Error('Another image was stored.')
}

try {
  console.log('| stored as | CPU ms |\n|---|---|')
  for (const format of ['jpeg', 'webp']) {
    const images = { format, quality: 80, resize: { width: WIDTH }, timeout: '120s' }
    const contender = uploadServer(format, { local: { durable: false } }, undefined, [], { images })
    const server = await startServer(contender, { directory, isPinned: false })
    await upload(server, format, 'first')
    const costs = []
    for (let round = 0; round < Number(values.rounds); round++) {
      const before = await server.cpuMs()
      await upload(server, format, `${round}`)
      costs.push((await server.cpuMs()) - before)
    }
    console.log(`| ${format} | ${median(costs).toFixed(0)} |`)
    await server.stop()
  }
} finally {
  await rm(directory, { recursive: true, force: true })
}
