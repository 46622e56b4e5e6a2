import { createHash } from 'node:crypto'
import { close as closeWithCallback } from 'node:fs'
import { unlink } from 'node:fs/promises'
import { promisify } from 'node:util'
import { isStorageFull, UploadError } from '../errors.ts'
import { writeAll as writeAllWithCallback } from '../files/write-all.ts'
import { inFileAt, inMemory, type Payload } from './bytes.ts'
import { SNIFF_BYTES, sniffType } from './sniff.ts'
import type { Spool } from './spool.ts'

export type { Payload } from './bytes.ts'

/** A payload up to this many bytes stays in memory while the budget allows. */
const MEMORY_BYTES = 512 * 1024
/** Default of what all payloads together may hold in memory, bytes. */
const BUDGET_BYTES = 64 * 1024 * 1024
/** What all files being written may gather, bytes, and how much of it each gathers before that is written in one call. */
const GATHERED_BYTES = 6 * 1024 * 1024
const [LEAST_FLUSH_BYTES, MOST_FLUSH_BYTES] = [128 * 1024, 1024 * 1024]

const close = promisify(closeWithCallback)
const writeAll = promisify(writeAllWithCallback)

/** Takes the bytes of one payload as they arrive. Either `finish` or `abort` ends it. */
export interface PayloadWriter {
  /**
   * Takes a chunk, which must not be changed afterwards. A returned promise asks to wait before the next one.
   * @throws UploadError `too_large` beyond the limit, `insufficient_storage` when the disk is full
   */
  write(chunk: Uint8Array): Promise<void> | undefined
  /** Takes a chunk of what can't be kept any more: it counts for the hash only. */
  skip(chunk: Uint8Array): void
  finish(): Promise<Payload>
  abort(): Promise<void>
  /** Of all that came, hex; nothing may come after it. */
  sha256(): string
}

interface PayloadOptions {
  name: string
  folders?: readonly string[]
  /** Where a payload too large for memory is written. */
  spool: Spool
  /** Most bytes it may have. */
  limit: number
}

/**
 * Makes payloads that share one budget of memory, what waits to be written to disk included. When it is used up
 * they go to disk from their first byte, and each byte is there before its sender is asked for the next one.
 */
export interface Payloads {
  open(options: PayloadOptions): PayloadWriter
  /** Reads a whole body into a payload. */
  read(body: AsyncIterable<Uint8Array>, options: PayloadOptions): Promise<Payload>
  /** Another budget from now on; what is in memory stays there and counts. */
  resize(budget: number): void
}

/** @param budget most bytes in memory; each payload that arrives may go beyond it by one chunk */
export function createPayloads(budget: number = BUDGET_BYTES): Payloads {
  const memory: Memory = { free: budget, spooling: new Set() }
  const open = (options: PayloadOptions) => openWriter(memory, options)

  return {
    open,
    resize(wanted) {
      memory.free += wanted - budget
      budget = wanted
    },
    async read(body, options) {
      const writer = open(options)
      try {
        for await (const chunk of body) await writer.write(chunk)
      } catch (error) {
        await writer.abort()
        throw error
      }
      return writer.finish()
    },
  }
}

/** What payloads that arrive share. */
interface Memory {
  /** Bytes; below 0 when it is used up. */
  free: number
  /** What is being written to files, by its hash. */
  readonly spooling: Set<unknown>
}

const NO_BYTES = Buffer.alloc(0)

function openWriter(memory: Memory, { name, folders = [], spool, limit }: PayloadOptions): PayloadWriter {
  const hash = createHash('sha256')
  let sha256: string | undefined
  let size = 0
  let reserved = 0
  let pending: Uint8Array[] = []
  let pendingBytes = 0
  let head: Uint8Array = NO_BYTES
  let inFile = false
  const file = createSpoolFile(spool, release)

  /** Queues what is pending, and says for what to wait: for all of it when there is much of it or memory is used up. */
  function flush(): Promise<void> | undefined {
    const chunks = pending
    const bytes = pendingBytes
    pending = []
    pendingBytes = 0
    const before = file.append(chunks, bytes)
    return (memory.free < 0 || bytes >= MEMORY_BYTES ? file.written() : before)?.catch(storageError)
  }

  function release(bytes = reserved): void {
    memory.free += bytes
    reserved -= bytes
  }

  async function discard(): Promise<void> {
    pending = []
    memory.spooling.delete(hash)
    await file.remove()
    release()
  }

  function digest(): string {
    sha256 ??= hash.digest('hex')
    return sha256
  }

  return {
    write(chunk) {
      if (chunk.length === 0) return undefined
      size += chunk.length
      hash.update(chunk)
      if (size > limit) throw tooLarge(name, limit)
      if (head.length < SNIFF_BYTES) head = lengthen(head, chunk)
      pending.push(chunk)
      pendingBytes += chunk.length
      memory.free -= chunk.length
      reserved += chunk.length
      inFile ||= size > MEMORY_BYTES || memory.free < 0
      if (!inFile) return undefined
      memory.spooling.add(hash)
      const share = Math.max(LEAST_FLUSH_BYTES, GATHERED_BYTES / memory.spooling.size)
      return pendingBytes >= Math.min(share, MOST_FLUSH_BYTES) || memory.free < 0 ? flush() : undefined
    },

    skip: chunk => void hash.update(chunk),
    sha256: digest,

    async finish() {
      try {
        let path: string | undefined
        if (inFile) {
          await flush()
          path = await file.close().catch(storageError)
          memory.spooling.delete(hash)
        }
        const { contentType, extension } = await sniffType(head)
        const identity = { name, folders, size, sha256: digest(), contentType, extension }
        return path === undefined ? inMemory(pending, identity, release) : inFileAt(path, identity)
      } catch (error) {
        await discard()
        throw error
      }
    },

    abort: discard,
  }
}

/**
 * A file of the spool, which is made once something is written to it: one call after the other, two buffers at most.
 *
 * @param onWritten hears how many bytes have been written
 */
function createSpoolFile(spool: Spool, onWritten: (bytes: number) => void) {
  let path: string | undefined
  let fd: number | undefined // while it is open
  let flushing: Promise<void> = Promise.resolve()
  let unwritten = 0

  async function closeFile(): Promise<void> {
    if (fd === undefined) return
    const closing = close(fd)
    fd = undefined
    await closing
  }

  return {
    /** Queues chunks behind the write in progress. @returns that write, or undefined if there is none */
    append(chunks: readonly Uint8Array[], bytes: number): Promise<void> | undefined {
      const before = unwritten > 0 ? flushing : undefined
      unwritten += bytes
      flushing = flushing.then(async () => {
        if (fd === undefined) ({ path, fd } = await spool.create())
        await writeAll(fd, chunks)
        unwritten -= bytes
        onWritten(bytes)
      })
      flushing.catch(() => {}) // seen by the next write, close or remove
      return before
    },
    /** Done when all is written that was queued. */
    written: () => flushing,
    /** @returns its path; undefined when nothing was written */
    async close(): Promise<string | undefined> {
      await flushing
      await closeFile()
      return path
    },
    async remove(): Promise<void> {
      await flushing.catch(() => {})
      if (path === undefined) return
      await closeFile().catch(() => {})
      await unlink(path).catch(() => {})
    },
  }
}

/** The start of a file, with what belongs to it of the next chunk. */
function lengthen(head: Uint8Array, chunk: Uint8Array): Uint8Array {
  const more = chunk.subarray(0, SNIFF_BYTES - head.length)
  return head.length === 0 ? more : Buffer.concat([head, more])
}

/** The error of a file over `limits.fileSize`. */
export function tooLarge(name: string, limit: number): UploadError {
  const step = limit < 1024 ? 0 : limit < 1024 ** 2 ? 1 : 2
  const most = `${+(limit / 1024 ** step).toFixed(1)} ${['bytes', 'KB', 'MB'][step]}`
  return new UploadError('too_large', `"${name || 'The file'}" is larger than ${most} (limits.fileSize).`)
}

function storageError(error: unknown): never {
  if (!isStorageFull(error)) throw error
  throw new UploadError(
    'insufficient_storage',
    'The disk for temporary files of upload-server is full. Free some space there, then send it again.',
    { cause: error },
  )
}
