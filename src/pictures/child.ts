import { writeFile } from 'node:fs/promises'
import { UploadError } from '../errors.ts'
import { findDifference } from './difference.ts'
import { bytesOf, type CompareJob, LOADERS, type PictureAnswer, type PictureJob } from './job.ts'
import { loadSharp } from './load.ts'
import { look, mustChange, needsWork, outputFormatOf } from './look.ts'
import { watchMemory } from './memory.ts'
import type { Format, SourceFormat } from './options.ts'
import { render } from './render.ts'
import { isSequence } from './strip/avif.ts'
import { notStripped, strip } from './strip/index.ts'

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
  const [answer, bytes] = await work(job).finally(done)
  process.send?.(answer)
  if (bytes) process.stdout.write(bytes)
  // V8 would keep the pixels of several images, because it counts only its own memory.
  gc?.({ type: 'minor' })
})

/** The parent kills the process after this message. */
function giveUp({ name }: PictureJob): void {
  const message = `"${name || 'The image'}" was not processed, because it needs more memory than other images of its size.`
  process.send?.({ is: 'failed', code: 'too_large', message } satisfies PictureAnswer)
}

async function work(job: PictureJob | CompareJob): Promise<[PictureAnswer, Buffer?]> {
  try {
    if ('before' in job) {
      const { image, ...difference } = await findDifference(await loadSharp(), job)
      return [{ is: 'compared', size: image?.length ?? 0, difference }, image]
    }
    const { bytes, extension } = (await change(job)) ?? {}
    return bytes ? [{ is: 'changed', size: bytes.length, extension }, bytes] : [{ is: 'same' }]
  } catch (error) {
    if (error instanceof UploadError) return [{ is: 'failed', code: error.code, message: error.message }]
    // Reading beyond the end of a buffer.
    if (error instanceof RangeError) return [{ is: 'unreadable', reason: 'it is damaged or incomplete' }]
    const reason = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)
    return [{ is: 'unreadable', reason }]
  }
}

/** @returns undefined if the image stays unchanged */
async function change(job: PictureJob): Promise<{ bytes: Buffer; extension?: string } | undefined> {
  const { name, contentType, options } = job
  if (contentType === 'image/apng') return stripped(job, 'png')
  const isHeif = LOADERS[contentType] === 'VipsForeignLoadHeif'
  if (isHeif && isSequence(await bytesOf(job))) {
    if (options.stripMetadata) throw notStripped(name, 'it is an animated AVIF')
    return undefined
  }
  const sharp = await loadSharp()
  const picture = await look(sharp, job)
  const { source } = picture
  const target = outputFormatOf(picture, options)
  const original =
    options.stripMetadata && !mustChange(picture, options) ? await stripped(job, source) : undefined
  if (!needsWork(picture, target, options)) return original
  const rendered = await render(sharp, picture, target, options)
  const size = original?.bytes.length ?? job.size
  if (!mustChange(picture, options) && !options.larger && rendered.length >= size) return original
  const bytes = options.stripMetadata ? strip(rendered, target, name) : rendered
  return target === source ? { bytes } : { bytes, extension: EXTENSIONS[target] }
}

/** @returns undefined if there is nothing to remove */
async function stripped(job: PictureJob, format: SourceFormat): Promise<{ bytes: Buffer } | undefined> {
  const original = await bytesOf(job)
  const bytes = strip(original, format, job.name)
  return bytes.equals(original) ? undefined : { bytes }
}
