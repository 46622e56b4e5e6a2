import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { messageOf, systemCode } from './errors.ts'
import { Problem } from './problem.ts'

/** Bytes of known length, which can be read as often as needed. */
export interface Body {
  /** Bytes. */
  readonly size: number
  /**
   * Reads all bytes. A chunk is valid until the next one is requested. Ends with the reason of the signal.
   *
   * @throws Problem if they can't be read
   */
  read(signal: AbortSignal): AsyncGenerator<Buffer>
}

/** A part of a file, as byte offsets. */
export interface Range {
  readonly start: number
  /** Offset of the first byte after it. */
  readonly end: number
}

/** The bytes of a file. */
export interface Content extends Body {
  /** Reads a part of it. Default: all bytes. */
  read(signal: AbortSignal, range?: Range): AsyncGenerator<Buffer>
}

/** Size of one read from a file, in bytes. */
const CHUNK_BYTES = 256 * 1024
/** Number of chunk buffers that are kept for the next file. */
const MAX_SPARE = 16
const spare: Buffer[] = []

/** Bytes in memory. Their chunks stay valid. */
export function inMemory(bytes: Uint8Array | readonly Uint8Array[]): Content {
  const chunks = bytes instanceof Uint8Array ? [bytes] : bytes
  const size = chunks.reduce((sum, { length }) => sum + length, 0)
  return {
    size,
    async *read(signal, { start, end } = { start: 0, end: size }) {
      let position = 0
      for (const chunk of chunks) {
        const piece = chunk.subarray(Math.max(0, start - position), Math.max(0, end - position))
        position += chunk.length
        if (piece.length === 0) continue
        signal.throwIfAborted()
        yield Buffer.isBuffer(piece) ? piece : Buffer.from(piece.buffer, piece.byteOffset, piece.length)
      }
    },
  }
}

/** The bytes of a file that does not change. */
export function inFile(path: string, size: number): Content {
  return { size, read: (signal, range = { start: 0, end: size }) => readFile(path, range, signal) }
}

/**
 * Reads a part of a file, one chunk ahead, and into the same memory again and again, which takes a third of the time of new
 * memory for each chunk.
 */
async function* readFile(path: string, { start, end }: Range, signal: AbortSignal): AsyncGenerator<Buffer> {
  const fail = (error: unknown): never => {
    const reason = systemCode(error) ?? messageOf(error)
    throw new Problem(`its temporary file could not be read on this server (${reason})`, {
      advice: 'Send it again.',
      cause: error,
    })
  }
  signal.throwIfAborted()
  const file = await open(path).catch(fail)
  const takeMemory = () => spare.pop() ?? Buffer.allocUnsafeSlow(CHUNK_BYTES)
  const memory: [Buffer, Buffer] = [takeMemory(), takeMemory()]
  let position = start
  const readNext = () => {
    const reading = file.read(memory[0], 0, Math.min(CHUNK_BYTES, end - position), position)
    reading.catch(() => {}) // it is thrown when it is awaited
    return reading
  }
  let reading = position < end ? readNext() : undefined
  let isDone = false
  try {
    while (reading !== undefined) {
      const { bytesRead, buffer } = await reading.catch(fail)
      signal.throwIfAborted()
      if (bytesRead === 0) throw wrongSize()
      position += bytesRead
      memory.reverse()
      reading = position < end ? readNext() : undefined
      yield buffer.subarray(0, bytesRead)
    }
    isDone = true
  } finally {
    await reading?.catch(() => {})
    // If it ends early, a socket may still use the last chunk.
    if (isDone && spare.length < MAX_SPARE) spare.push(...memory)
    await file.close()
  }
}

/** The error for a body that has other than `size` bytes. */
export function wrongSize(): Problem {
  return new Problem('it does not have the size that was announced', { retryable: true })
}

/** Reads a whole body. @throws `wrongSize` */
export async function* readExactly(body: Body, signal: AbortSignal): AsyncGenerator<Buffer> {
  let left = body.size
  for await (const chunk of body.read(signal)) {
    left -= chunk.length
    if (left < 0) break
    yield chunk
  }
  if (left !== 0) throw wrongSize()
}

/** The same in chunks that stay valid, for libraries that keep them. */
export async function* readCopies(body: Body, signal: AbortSignal): AsyncGenerator<Buffer> {
  for await (const chunk of readExactly(body, signal)) yield Buffer.from(chunk)
}

/** Reads a whole body into memory. */
export async function readAll(body: Body, signal: AbortSignal): Promise<Buffer> {
  const all = Buffer.allocUnsafe(body.size)
  let position = 0
  for await (const chunk of body.read(signal)) position += chunk.copy(all, position)
  return all
}

/** Returns the hash of a body, hex. */
export async function hashOf(body: Body, algorithm: string, signal: AbortSignal): Promise<string> {
  const hash = createHash(algorithm)
  for await (const chunk of body.read(signal)) hash.update(chunk)
  return hash.digest('hex')
}

/** Divides a file into parts of the same size. The last one may be shorter. */
export function divide(content: Content, partBytes: number): Body[] {
  return Array.from({ length: Math.ceil(content.size / partBytes) }, (_, i) => {
    const [start, end] = [i * partBytes, Math.min((i + 1) * partBytes, content.size)]
    return { size: end - start, read: signal => content.read(signal, { start, end }) }
  })
}
