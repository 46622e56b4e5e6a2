import { writeFile } from 'node:fs/promises'
import { UploadError } from '../errors.ts'
import { withoutMetadata } from './apng.ts'
import { bytesOf, type PictureAnswer, type PictureJob } from './job.ts'
import { loadSharp } from './load.ts'
import { look, mustChange, needsWork, outputFormatOf } from './look.ts'
import { watchMemory } from './memory.ts'
import type { Format, SourceFormat } from './options.ts'
import { render } from './render.ts'

// The process that changes images, started by processes.ts. It changes one at a time, and is killed after a timeout.

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

process.on('message', async (job: PictureJob) => {
  const done = watchMemory(() => giveUp(job))
  const [answer, bytes] = await work(job).finally(done)
  process.send?.(answer)
  if (bytes) process.stdout.write(bytes)
})

/** The parent kills the process after this message. */
function giveUp({ name }: PictureJob): void {
  const message = `"${name || 'The image'}" was not processed, because it needs more memory than other images of its size.`
  process.send?.({ is: 'failed', code: 'too_large', message } satisfies PictureAnswer)
}

async function work(job: PictureJob): Promise<[PictureAnswer, Buffer?]> {
  try {
    const { bytes, extension } = (await change(job)) ?? {}
    return bytes ? [{ is: 'changed', size: bytes.length, extension }, bytes] : [{ is: 'same' }]
  } catch (error) {
    if (error instanceof UploadError) return [{ is: 'failed', code: error.code, message: error.message }]
    const reason = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)
    return [{ is: 'unreadable', reason }]
  }
}

/** @returns undefined if the image stays unchanged */
async function change(job: PictureJob): Promise<{ bytes: Buffer; extension?: string } | undefined> {
  const { contentType, options } = job
  if (contentType === 'image/apng') {
    const bytes = withoutMetadata(await bytesOf(job))
    return bytes && { bytes }
  }
  const sharp = await loadSharp()
  const picture = await look(sharp, job)
  const target = outputFormatOf(picture, options)
  if (!needsWork(picture, target, options)) return undefined
  const bytes = await render(sharp, picture, target, options)
  if (!mustChange(picture, options) && !options.larger && bytes.length >= job.size) return undefined
  return target === picture.source ? { bytes } : { bytes, extension: EXTENSIONS[target] }
}
