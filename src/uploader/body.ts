import { addAbortSignal } from 'node:stream'
import { UploadError } from '../errors.ts'
import type { UploadObject } from './provider.ts'

/**
 * The bytes of an object, in chunks. Ends early when the signal is aborted.
 *
 * @throws UploadError `delivery_failed`, retryable, when they are fewer or more than the object says
 */
export async function* readBody(object: UploadObject, signal: AbortSignal): AsyncGenerator<Buffer> {
  let size = 0
  for await (const chunk of addAbortSignal(signal, object.stream())) {
    size += chunk.length
    if (size > object.size) break
    yield chunk
  }
  if (size !== object.size) {
    const message = `"${object.key}" has another size than was said of it. Send it again.`
    throw new UploadError('delivery_failed', message, { retryable: true })
  }
}
