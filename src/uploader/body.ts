import { addAbortSignal, Readable } from 'node:stream'
import { systemCode, UploadError } from '../errors.ts'
import type { UploadObject } from './provider.ts'

/**
 * The bytes of an object, in chunks. Ends early when the signal is aborted.
 *
 * @throws UploadError `delivery_failed` when they cannot be read, or, retryable, are fewer or more than the object says
 */
export async function* readBody(object: UploadObject, signal: AbortSignal): AsyncGenerator<Buffer> {
  let size = 0
  try {
    for await (const chunk of addAbortSignal(signal, object.stream())) {
      size += chunk.length
      if (size > object.size) break
      yield chunk
    }
  } catch (error) {
    signal.throwIfAborted()
    throw unreadable(object.key, error)
  }
  if (size !== object.size) {
    const message = `"${object.key}" has another size than was said of it. Send it again.`
    throw new UploadError('delivery_failed', message, { retryable: true })
  }
}

/** The same as a stream, for request bodies. */
export function streamBody(object: UploadObject, signal: AbortSignal): Readable {
  return Readable.from(readBody(object, signal), { objectMode: false })
}

/**
 * Cuts a body into parts of the same size. Several may read from it at once: each gets the next part. The memory of
 * parts that are released is used again, since the garbage collector comes too late for so much of it.
 */
export async function* readParts(
  object: UploadObject,
  partBytes: number,
  signal: AbortSignal,
): AsyncGenerator<Part, void, undefined> {
  const free: Buffer[] = []
  const take = (): Buffer => free.pop() ?? Buffer.allocUnsafeSlow(partBytes)
  let number = 1
  let [part, filled] = [take(), 0]
  for await (const chunk of readBody(object, signal)) {
    for (let rest = chunk; rest.length > 0; ) {
      const copied = rest.copy(part, filled)
      filled += copied
      rest = rest.subarray(copied)
      if (filled < partBytes) continue
      const full = part
      yield { number: number++, bytes: full, release: () => free.push(full) }
      ;[part, filled] = [take(), 0]
    }
  }
  if (filled > 0) yield { number, bytes: part.subarray(0, filled), release() {} }
}

export interface Part {
  /** From 1. */
  readonly number: number
  readonly bytes: Buffer
  /** Gives the memory back for a later part. */
  release(): void
}

function unreadable(key: string, error: unknown): UploadError {
  const reason = systemCode(error) ?? (error instanceof Error ? error.message : String(error))
  const message = `reading "${key}" on this server failed (${reason})`
  return new UploadError('delivery_failed', message, { cause: error })
}
