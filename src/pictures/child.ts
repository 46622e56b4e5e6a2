import { writeFile } from 'node:fs/promises'
import { messageOf, UploadError } from '../errors.ts'
import { findDifference } from './difference.ts'
import {
  bytesOf,
  type CompareJob,
  LOADERS,
  type PictureAnswer,
  type PictureJob,
  type PictureResult,
} from './job.ts'
import { allowLoaders, loadSharp, type SharpModule } from './load.ts'
import { look, mustChange, needsWork, outputFormatOf } from './look.ts'
import { watchMemory } from './memory.ts'
import type { Format, SourceFormat } from './options.ts'
import { render } from './render.ts'
import { isSequence } from './strip/avif.ts'
import { exifOf } from './strip/exif.ts'
import { assertOnePage, notStripped, strip } from './strip/index.ts'

// The process that changes and compares images, started by processes.ts. It does one job at a time, and is killed after a timeout.

const EXTENSIONS: Partial<Record<SourceFormat, string>> = {
  webp: '.webp',
  avif: '.avif',
  jpeg: '.jpg',
  png: '.png',
} satisfies Record<Format, string>

// It ends with its parent. Any other way to end would wait for libvips.
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'))
// A terminal and systemd send signals to all processes, but running uploads must be completed.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {})
// If Linux runs out of memory, it should kill this process instead of the server.
writeFile('/proc/self/oom_score_adj', '1000').catch(() => {})

process.on('message', async (job: PictureJob | CompareJob) => {
  const done = watchMemory(() => giveUp('before' in job ? job.after : job))
  const answer = await work(job).finally(done)
  process.send?.(answer)
  // V8 would keep the pixels of several images, because it counts only its own memory.
  gc?.({ type: 'minor' })
})

/** The parent kills the process after this message. */
function giveUp({ name }: PictureJob): void {
  const message = `"${name || 'The image'}" was not processed, because it needs more memory than other images of its size.`
  process.send?.({ is: 'failed', code: 'too_large', message } satisfies PictureAnswer)
}

async function work(job: PictureJob | CompareJob): Promise<PictureAnswer> {
  try {
    const sharp = await loadSharp()
    return 'before' in job ? await findDifference(sharp, job) : await change(sharp, job)
  } catch (error) {
    if (error instanceof UploadError) return { is: 'failed', code: error.code, message: error.message }
    // Reading beyond the end of a buffer.
    if (error instanceof RangeError) return { is: 'unreadable', reason: 'it is damaged or incomplete' }
    return { is: 'unreadable', reason: messageOf(error).split('\n')[0] ?? '' }
  }
}

async function change(sharp: SharpModule, job: PictureJob): Promise<PictureResult> {
  const { name, contentType, options } = job
  const original = await bytesOf(job)
  if (contentType === 'image/apng') return changed(original, await clean(sharp, original, 'png', name))
  if (LOADERS[contentType] === 'VipsForeignLoadHeif' && isSequence(original)) {
    if (options.stripMetadata) throw notStripped(name, 'it is an animated AVIF')
    return { is: 'same' }
  }
  const picture = await look(sharp, job)
  const { source } = picture
  const target = outputFormatOf(picture, options)
  const mustRender = mustChange(picture, options)
  if (options.stripMetadata && target === 'tiff') assertOnePage(original, name)
  const kept = options.stripMetadata && !mustRender ? await clean(sharp, original, source, name) : original
  if (!needsWork(picture, target, options)) return changed(original, kept)
  const rendered = await render(sharp, picture, target, options)
  if (!mustRender && !options.larger && rendered.length >= kept.length) return changed(original, kept)
  const bytes = options.stripMetadata ? await clean(sharp, rendered, target, name) : rendered
  return { is: 'changed', bytes, extension: target === source ? undefined : EXTENSIONS[target] }
}

function changed(original: Buffer, bytes: Buffer): PictureResult {
  return bytes.equals(original) ? { is: 'same' } : { is: 'changed', bytes }
}

/** Removes the metadata. Then libvips, which shares no code with ours, must find none. */
async function clean(sharp: SharpModule, file: Buffer, format: SourceFormat, name: string): Promise<Buffer> {
  const bytes = strip(file, format, name)
  allowLoaders(sharp, [LOADERS[`image/${format}`] ?? ''])
  const found = await sharp(bytes, { limitInputPixels: false }).metadata()
  const { exif, xmp, iptc, comments, tifftagPhotoshop, orientation = 1 } = found
  const allowed = exifOf(orientation)
  const isOrientation = exif === undefined || exif.subarray(-allowed.length).equals(allowed)
  if (!isOrientation || xmp || iptc || comments || tifftagPhotoshop)
    throw notStripped(name, 'some of it would remain')
  return bytes
}
