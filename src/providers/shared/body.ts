import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { addAbortSignal } from 'node:stream'
import { messageOf, systemCode, UploadError } from '../../errors.ts'
import type { UploadObject } from '../contract.ts'

/** Read from a file at once, bytes. */
const CHUNK_BYTES = 256 * 1024
/** Memory for chunks that is kept for the next file, in chunks. */
const MOST_KEPT = 16
const kept: Buffer[] = []

/** A piece of a body, in bytes from its start. */
export interface Range {
  readonly start: number
  /** The first byte behind it. */
  readonly end: number
}

/**
 * The bytes of an object, or of a piece of it, in chunks. Ends early when the signal is aborted.
 *
 * @throws UploadError `delivery_failed` when they cannot be read, or, retryable, are fewer or more than the object says
 */
export async function* readBody(
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
      const piece = chunk.subarray(Math.max(0, start - position), end - position)
      position += chunk.length
      if (position > object.size) break
      if (piece.length > 0) yield piece
      if (position >= end && end < object.size) break
    }
  } catch (error) {
    signal.throwIfAborted()
    // A connection that breaks throws its error in here, too, where the body goes through a stream.
    throw stream.errored === error ? unreadable(object.key, error) : error
  }
  checkSize(object, position, end)
}

/**
 * The same as `readBody`, but each chunk is good only until the next one is asked for: files are read into the same
 * memory over and over, which takes a third of the time of having new memory for each chunk.
 */
export async function* lendBody(
  object: UploadObject,
  signal: AbortSignal,
  { start, end }: Range = { start: 0, end: object.size },
): AsyncGenerator<Buffer> {
  const { path, key } = object
  if (path === undefined) return yield* readBody(object, signal, { start, end })
  const fail = (error: unknown): never => {
    throw unreadable(key, error)
  }
  const file = await open(path).catch(fail)
  const memory = [0, 1].map(() => kept.pop() ?? Buffer.allocUnsafeSlow(CHUNK_BYTES)) as [Buffer, Buffer]
  let [current, other] = memory
  let position = start
  let isDone = false
  const read = () => {
    const result = file.read(current, 0, CHUNK_BYTES, position)
    result.catch(() => {}) // seen when it is waited for
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
    // When it ends early the last chunk may still lie before a socket.
    if (isDone && kept.length < MOST_KEPT) kept.push(...memory)
    await file.close()
  }
}

/** The hash of a body, hex. */
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
  const message = `"${key}" has another size than was said of it. Send it again.`
  throw new UploadError('delivery_failed', message, { retryable: true })
}

/** Cuts a body into pieces of the same size; the last one may be shorter. */
export function cutBody({ size }: UploadObject, pieceBytes: number): Range[] {
  return Array.from({ length: Math.ceil(size / pieceBytes) }, (_, i) => ({
    start: i * pieceBytes,
    end: Math.min((i + 1) * pieceBytes, size),
  }))
}

/** A piece of a body that can be read again and again. */
export interface Part extends Range {
  /** From 1. */
  readonly number: number
  /** Each is good until the next one is asked for. */
  chunks(): AsyncGenerator<Buffer>
  /** Gives its memory back for a later part. */
  release(): void
}

/**
 * Cuts a body into parts. Several may read from it at once: each gets the next part. Parts of a file are read when they
 * are wanted and never held: many uploads at once would need more memory than they may have. Others are copied.
 */
export async function* readParts(
  object: UploadObject,
  partBytes: number,
  signal: AbortSignal,
): AsyncGenerator<Part, void, undefined> {
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
  for await (const chunk of readBody(object, signal)) {
    for (let rest = chunk; rest.length > 0; ) {
      const range = ranges[index] as Range
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
  const message = `reading "${key}" on this server failed (${reason})`
  return new UploadError('delivery_failed', message, { cause: error })
}
