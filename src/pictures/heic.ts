import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { loadLibrary, type SharpModule } from './load.ts'
import { withProfile } from './png.ts'

/** The pixels of an upright image, four bytes each. */
interface Pixels {
  readonly width: number
  readonly height: number
  readonly hasAlpha: boolean
  readonly data: Uint8Array
}

/** Runs in a thread, because the library blocks and writes to standard output. */
const DECODE = `
const { parentPort, workerData } = require('node:worker_threads')
const { bytes, library, maxPixels } = workerData
const { HeifDecoder } = require(library)
const images = new HeifDecoder().decode(bytes)
const image = images.find(one => one.is_primary()) ?? images[0]
if (!image) throw new Error('it contains no image')
const [width, height] = [image.get_width(), image.get_height()]
if (width * height > maxPixels) throw new Error('it has more pixels than its header declares')
image.display({ data: new Uint8ClampedArray(width * height * 4), width, height }, shown => {
  if (!shown) throw new Error('its data is damaged')
  const pixels = { width, height, hasAlpha: image.has_alpha_channel(), data: new Uint8Array(shown.data.buffer) }
  parentPort.postMessage(pixels, [shown.data.buffer])
})
`

/** Whether sharp can't read HEVC. The version that npm installs can't. */
export function needsDecoder(sharp: SharpModule): boolean {
  return !sharp.format.heif.input.fileSuffix?.includes('.heic')
}

/**
 * Converts a HEIC file to a PNG, upright and with its color profile, without other metadata.
 *
 * @param icc color profile. Undefined if there is none
 * @throws UploadError `destination_failed` if its package is not installed; Error if it is not a HEIC file
 */
export async function heicToPng(
  sharp: SharpModule,
  bytes: Buffer,
  icc: Buffer | undefined,
  maxPixels: number,
): Promise<Buffer> {
  const library = await loadLibrary('libheif-js', async () =>
    import.meta.resolve('libheif-js/wasm-bundle.js'),
  )
  const { width, height, hasAlpha, data } = await decode({ bytes, library, maxPixels })
  const raw = sharp(data, { raw: { width, height, channels: 4 } })
  const png = await (hasAlpha ? raw : raw.removeAlpha()).png({ compressionLevel: 0 }).toBuffer()
  return icc ? withProfile(png, icc) : png
}

function decode({
  library,
  ...work
}: {
  bytes: Buffer
  library: string
  maxPixels: number
}): Promise<Pixels> {
  return new Promise((resolve, reject) => {
    const workerData = { ...work, library: fileURLToPath(library) }
    const worker = new Worker(DECODE, { eval: true, workerData, stdout: true, stderr: true })
    worker.once('message', resolve)
    worker.once('error', reject)
    worker.once('exit', () => reject(new Error('its decoder stopped')))
  })
}
