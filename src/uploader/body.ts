import { open } from 'node:fs/promises'
import { addAbortSignal, Readable } from 'node:stream'
import { systemCode, UploadError } from '../errors.ts'
import type { UploadObject } from './provider.ts'

/** Read from a file at once, bytes. */
const CHUNK_BYTES = 256 * 1024
/** Memory for chunks that is kept for the next file, in chunks. */
const MOST_KEPT = 16
const kept: Buffer[] = []

/**
 * The bytes of an object, in chunks. Ends early when the signal is aborted.
 *
 * @throws UploadError `delivery_failed` when they cannot be read, or, retryable, are fewer or more than the object says
 */
export async function* readBody(object: UploadObject, signal: AbortSignal): AsyncGenerator<Buffer> {
  const stream = addAbortSignal(signal, object.stream())
  let size = 0
  try {
    for await (const chunk of stream) {
      size += chunk.length
      if (size > object.size) break
      yield chunk
    }
  } catch (error) {
    signal.throwIfAborted()
    // A connection that breaks throws its error in here, too, where the body goes through a stream.
    throw stream.errored === error ? unreadable(object.key, error) : error
  }
  checkSize(object, size)
}

/**
 * The same as `readBody`, but each chunk is good only until the next one is asked for: files are read into the same
 * memory over and over, which takes a third of the time of having new memory for each chunk.
 */
export async function* lendBody(object: UploadObject, signal: AbortSignal): AsyncGenerator<Buffer> {
  const { path, key } = object
  if (path === undefined) return yield* readBody(object, signal)
  const fail = (error: unknown): never => {
    throw unreadable(key, error)
  }
  const file = await open(path).catch(fail)
  const memory = [0, 1].map(() => kept.pop() ?? Buffer.allocUnsafeSlow(CHUNK_BYTES)) as [Buffer, Buffer]
  let [current, other] = memory
  let size = 0
  let isDone = false
  const read = () => {
    const result = file.read(current, 0, CHUNK_BYTES, size)
    result.catch(() => {}) // seen when it is waited for
    return result
  }
  let reading = read()
  try {
    for (;;) {
      const { bytesRead, buffer } = await reading.catch(fail)
      signal.throwIfAborted()
      size += bytesRead
      if (bytesRead === 0 || size > object.size) break
      ;[current, other] = [other, current]
      reading = read()
      yield buffer.subarray(0, bytesRead)
    }
    checkSize(object, size)
    isDone = true
  } finally {
    await reading.catch(() => {})
    // When it ends early the last chunk may still lie before a socket.
    if (isDone && kept.length < MOST_KEPT) kept.push(...memory)
    await file.close()
  }
}

function checkSize({ key, size: expected }: UploadObject, size: number): void {
  if (size === expected) return
  const message = `"${key}" has another size than was said of it. Send it again.`
  throw new UploadError('delivery_failed', message, { retryable: true })
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
  for await (const chunk of lendBody(object, signal)) {
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
