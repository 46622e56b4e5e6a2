import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { addAbortSignal } from 'node:stream'
import { messageOf, systemCode, UploadError } from '../../errors.ts'
import type { UploadObject } from '../contract.ts'

/** Size of one read from a file, in bytes. */
const CHUNK_BYTES = 256 * 1024
/** Number of chunk buffers that are kept for the next file. */
const MAX_SPARE = 16
const spare: Buffer[] = []

/** A part of a body, as byte offsets. */
export interface Range {
  readonly start: number
  /** Offset of the first byte after it. */
  readonly end: number
}

/**
 * Reads the bytes of an object, or of a part of it, in chunks. Ends early when the signal is aborted.
 *
 * @throws UploadError `destination_failed` if they can't be read; retryable if their number differs from the object's size
 */
export async function* readObject(
  object: UploadObject,
  signal: AbortSignal,
  { start, end }: Range = { start: 0, end: object.size },
): AsyncGenerator<Buffer> {
  const { path } = object
  const isPiece = start > 0 || end < object.size
  const seeks = isPiece && path !== undefined
  const source = seeks ? createReadStream(path, { start, highWaterMark: CHUNK_BYTES }) : object.stream()
  const stream = addAbortSignal(signal, source)
  let position = seeks ? start : 0
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      // The cast is safe: without an encoding, chunks are buffers.
      const piece = chunk.subarray(Math.max(0, start - position), end - position)
      position += chunk.length
      if (position > object.size) break
      if (piece.length > 0) yield piece
      if (position >= end && end < object.size) break
    }
  } catch (error) {
    signal.throwIfAborted()
    // If the body is read through a stream, a broken connection throws its error here, too.
    throw stream.errored === error ? unreadable(object.key, error) : error
  }
  checkSize(object, position, end)
}

/**
 * Does the same as `readObject`, but each chunk is valid only until the next one is requested. Files are read into the same
 * memory again and again, which takes a third of the time of new memory for each chunk.
 */
export async function* lendBody(
  object: UploadObject,
  signal: AbortSignal,
  { start, end }: Range = { start: 0, end: object.size },
): AsyncGenerator<Buffer> {
  const { path, key } = object
  if (path === undefined) return yield* readObject(object, signal, { start, end })
  const fail = (error: unknown): never => {
    throw unreadable(key, error)
  }
  const file = await open(path).catch(fail)
  const takeMemory = () => spare.pop() ?? Buffer.allocUnsafeSlow(CHUNK_BYTES)
  const memory: [Buffer, Buffer] = [takeMemory(), takeMemory()]
  let [current, other] = memory
  let position = start
  let isDone = false
  const read = () => {
    const result = file.read(current, 0, CHUNK_BYTES, position)
    result.catch(() => {}) // the caller gets the error when it awaits the result
    return result
  }
  let reading = read()
  try {
    for (;;) {
      const { bytesRead, buffer } = await reading.catch(fail)
      signal.throwIfAborted()
      const length = Math.min(bytesRead, end - position)
      position += bytesRead
      if (bytesRead === 0 || position > object.size) break
      const isLast = position >= end && end < object.size
      if (!isLast) {
        ;[current, other] = [other, current]
        reading = read()
      }
      yield buffer.subarray(0, length)
      if (isLast) break
    }
    checkSize(object, position, end)
    isDone = true
  } finally {
    await reading.catch(() => {})
    // If it ends early, a socket may still use the last chunk.
    if (isDone && spare.length < MAX_SPARE) spare.push(...memory)
    await file.close()
  }
}

/** Returns the hash of a body, as hexadecimal text. */
export async function hashBody(
  object: UploadObject,
  algorithm: string,
  signal: AbortSignal,
): Promise<string> {
  const hash = createHash(algorithm)
  for await (const chunk of lendBody(object, signal)) hash.update(chunk)
  return hash.digest('hex')
}

function checkSize({ key, size }: UploadObject, position: number, end: number): void {
  if (position >= end && position <= size) return
  const message = `"${key}" does not have the size that was announced. Try again.`
  throw new UploadError('destination_failed', message, { retryable: true })
}

/** Divides a body into parts of the same size. The last one may be shorter. */
export function cutBody({ size }: UploadObject, pieceBytes: number): Range[] {
  return Array.from({ length: Math.ceil(size / pieceBytes) }, (_, i) => ({
    start: i * pieceBytes,
    end: Math.min((i + 1) * pieceBytes, size),
  }))
}

/** A part of a body that can be read repeatedly. */
export interface BodyPart extends Range {
  /** Counts from 1. */
  readonly number: number
  /** Each chunk is valid until the next one is requested. */
  chunks(): AsyncGenerator<Buffer>
  /** Releases its memory for a later part. */
  release(): void
}

/**
 * Divides a body into parts. Several workers may read at once; each gets the next part. Parts of a file are read on demand and
 * never held, because many concurrent uploads would exceed their memory. Other parts are copied.
 */
export async function* readParts(
  object: UploadObject,
  partBytes: number,
  signal: AbortSignal,
): AsyncGenerator<BodyPart, void, undefined> {
  const ranges = cutBody(object, partBytes)
  if (object.path !== undefined) {
    for (const [i, range] of ranges.entries())
      yield { ...range, number: i + 1, chunks: () => lendBody(object, signal, range), release() {} }
    return
  }
  const free: Buffer[] = []
  let index = 0
  let filled = 0
  let part: Buffer = Buffer.alloc(0)
  for await (const chunk of readObject(object, signal)) {
    for (let rest = chunk; rest.length > 0; ) {
      const range = ranges[index]
      if (range === undefined) return // `readObject` yields no more bytes than the size of the object
      if (filled === 0) part = free.pop() ?? Buffer.allocUnsafeSlow(partBytes)
      const copied = rest.copy(part, filled)
      filled += copied
      rest = rest.subarray(copied)
      if (range.start + filled < range.end) continue
      const memory = part
      const bytes = memory.subarray(0, filled)
      ;[filled, index] = [0, index + 1]
      yield { ...range, number: index, chunks: () => only(bytes), release: () => free.push(memory) }
    }
  }
}

async function* only(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes
}

function unreadable(key: string, error: unknown): UploadError {
  const reason = systemCode(error) ?? messageOf(error)
  const message = `"${key}" could not be read on this server (${reason})`
  return new UploadError('destination_failed', message, { cause: error })
}
