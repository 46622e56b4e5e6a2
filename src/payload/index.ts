import { createHash } from 'node:crypto'
import { unlink } from 'node:fs/promises'
import { isStorageFull, UploadError } from '../errors.ts'
import { closeFile, writeAll } from '../files/file-calls.ts'
import { inFileAt, inMemory, type Payload } from './bytes.ts'
import { sniffLength, sniffType } from './sniff.ts'
import type { Spool } from './spool.ts'

export type { Payload } from './bytes.ts'

/** Maximum size of a small payload, which is kept in memory while the budget allows it, bytes. */
const SMALL_BYTES = 512 * 1024
/** Maximum size of any other payload in memory, bytes. */
const LARGE_BYTES = 8 * 1024 * 1024
/** Part of the budget that must be unused for payloads that are not small to stay in memory. */
const SPARE = 2 / 3
/** Bytes that a request may always hold beside its payloads, so that large requests can't block small ones. */
const ALWAYS_TAKEN_BYTES = 256 * 1024
/** Default memory budget of all payloads together, bytes. */
const BUDGET_BYTES = 64 * 1024 * 1024
/** What the program takes without uploads, and the smallest budget in a small container, bytes. */
const [NODE_BYTES, LEAST_BUDGET_BYTES] = [80 * 1024 * 1024, 1024 * 1024]
/** Bytes that all files together may buffer before writing, and bytes that one file buffers for one call. */
const GATHERED_BYTES = 6 * 1024 * 1024
const [LEAST_FLUSH_BYTES, MOST_FLUSH_BYTES] = [128 * 1024, 1024 * 1024]

/** Receives the bytes of one payload. `finish` or `abort` ends it. */
export interface PayloadWriter {
  /**
   * Adds a chunk, which must not be changed afterwards. If it returns a promise, await it before the next chunk.
   * @throws UploadError `too_large` beyond the limit, `insufficient_storage` if the disk is full
   */
  write(chunk: Uint8Array): Promise<void> | undefined
  /** Adds a chunk to the hash only, after the payload has been given up. */
  skip(chunk: Uint8Array): void
  finish(): Promise<Payload>
  abort(): Promise<void>
  /** SHA-256 of all chunks, hex. No chunk may follow. */
  sha256(): string
}

interface PayloadOptions {
  name: string
  folders?: readonly string[]
  /** Where payloads are written that are too large for memory. */
  spool: Spool
  /** Maximum size, bytes. */
  limit: number
}

/**
 * Makes payloads that share one memory budget, which includes buffers for the disk. When it is used up, payloads are written
 * to disk from their first byte, and a client has to wait until its bytes are written (backpressure). Larger payloads stay in
 * memory while little of it is used.
 */
export interface Payloads {
  open(options: PayloadOptions): PayloadWriter
  /** Reads a whole body into a payload. */
  read(body: AsyncIterable<Uint8Array>, options: PayloadOptions): Promise<Payload>
  /**
   * Counts bytes that a request holds beside its payloads.
   *
   * @returns gives them back, once
   * @throws UploadError `overloaded` if they don't fit. A single request may exceed the budget
   */
  take(bytes: number): () => void
  /** Changes the budget. Payloads in memory stay there, and count. */
  resize(budget: number): void
}

/**
 * @param budget in bytes. Each payload may exceed it by one chunk
 * @param container memory limit of the container, bytes. The budget is an eighth of what Node leaves of it at most
 */
export function createPayloads(
  budget: number = BUDGET_BYTES,
  container: number = process.constrainedMemory() || Infinity,
): Payloads {
  const most = Math.max(LEAST_BUDGET_BYTES, (container - NODE_BYTES) / 8)
  const first = Math.min(budget, most)
  const memory: Memory = { budget: first, free: first, taken: 0, spooling: new Set() }
  const open = (options: PayloadOptions) => openWriter(memory, options)

  return {
    open,
    take(bytes) {
      if (bytes > memory.free && memory.taken > 0 && bytes > ALWAYS_TAKEN_BYTES) throw overloaded()
      memory.free -= bytes
      memory.taken += bytes
      return () => {
        memory.free += bytes
        memory.taken -= bytes
      }
    },
    resize(wanted) {
      const next = Math.min(wanted, most)
      memory.free += next - memory.budget
      memory.budget = next
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

/** The state that incoming payloads share. */
interface Memory {
  /** Bytes. */
  budget: number
  /** Bytes that are left. Negative if the budget is exceeded. */
  free: number
  /** Bytes that requests hold beside their payloads. */
  taken: number
  /** Files that are being written, by hash. */
  readonly spooling: Set<unknown>
}

const NO_BYTES = Buffer.alloc(0)

type SpoolFile = ReturnType<typeof createSpoolFile>

function openWriter(memory: Memory, { name, folders = [], spool, limit }: PayloadOptions): PayloadWriter {
  const hash = createHash('sha256')
  let sha256: string | undefined
  let size = 0
  let reserved = 0
  let pending: Uint8Array[] = []
  let pendingBytes = 0
  let head: Uint8Array = NO_BYTES
  /** Undefined while the payload is in memory. */
  let file: SpoolFile | undefined

  const explain = (error: unknown) => storageError(error, spool)
  const mayStay = () => !spool.isLinked && size <= LARGE_BYTES && memory.free >= memory.budget * SPARE

  /** Queues the pending chunks. Returns a promise to wait for if there are many, or if the budget is used up. */
  function flush(file: SpoolFile): Promise<void> | undefined {
    const chunks = pending
    const bytes = pendingBytes
    pending = []
    pendingBytes = 0
    const before = file.append(chunks, bytes)
    return (memory.free < 0 || bytes >= SMALL_BYTES ? file.written() : before)?.catch(explain)
  }

  function release(bytes = reserved): void {
    memory.free += bytes
    reserved -= bytes
  }

  async function discard(): Promise<void> {
    pending = []
    memory.spooling.delete(hash)
    await file?.remove()
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
      if (head.length < sniffLength(head)) head = lengthen(head, chunk)
      pending.push(chunk)
      pendingBytes += chunk.length
      memory.free -= chunk.length
      reserved += chunk.length
      if (!file && memory.free >= 0 && (size <= SMALL_BYTES || mayStay())) return undefined
      file ??= createSpoolFile(spool, release)
      memory.spooling.add(hash)
      const share = Math.max(LEAST_FLUSH_BYTES, GATHERED_BYTES / memory.spooling.size)
      return pendingBytes >= Math.min(share, MOST_FLUSH_BYTES) || memory.free < 0 ? flush(file) : undefined
    },

    skip: chunk => void hash.update(chunk),
    sha256: digest,

    async finish() {
      try {
        let path: string | undefined
        if (file) {
          await flush(file)
          path = await file.close().catch(explain)
          memory.spooling.delete(hash)
        }
        const { contentType, extension } = sniffType(head, name)
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
 * A temporary file, which is made with the first write. It makes one call after the other, with at most two buffers.
 *
 * @param onWritten is called with the number of bytes written
 */
function createSpoolFile(spool: Spool, onWritten: (bytes: number) => void) {
  let path: string | undefined
  let fd: number | undefined // while it is open
  let flushing: Promise<void> = Promise.resolve()
  let unwritten = 0

  async function end(): Promise<void> {
    if (fd === undefined) return
    const closing = closeFile(fd)
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
      flushing.catch(() => {}) // the next write, close or remove reports it
      return before
    },
    /** Resolves when everything queued has been written. */
    written: () => flushing,
    /** @returns its path, or undefined if nothing was written */
    async close(): Promise<string | undefined> {
      await flushing
      await end()
      return path
    },
    async remove(): Promise<void> {
      await flushing.catch(() => {})
      if (path === undefined) return
      await end().catch(() => {})
      await unlink(path).catch(() => {})
    },
  }
}

/** The first bytes of a file, completed from the next chunk. */
function lengthen(head: Uint8Array, chunk: Uint8Array): Uint8Array {
  const longer = head.length === 0 ? chunk : Buffer.concat([head, chunk])
  return longer.subarray(0, sniffLength(longer))
}

/** A file in a message, which may have no name. */
export const quoteFile = (name: string) => (name === '' ? 'The file' : `"${name}"`)

/** The error for a file that exceeds a limit. */
export function tooLarge(name: string, limit: number): UploadError {
  return new UploadError('too_large', `${quoteFile(name)} is larger than ${describeLimit(limit)}.`)
}

/** The maximum size of a file, in messages: `limits.fileSize`, or `fileSize` of its client. */
export function describeLimit(limit: number): string {
  const step = limit < 1024 ? 0 : limit < 1024 ** 2 ? 1 : 2
  const most = `${+(limit / 1024 ** step).toFixed(1)} ${['bytes', 'KB', 'MB'][step]}`
  return `${most} (limits.fileSize, or fileSize of the client)`
}

function overloaded(): UploadError {
  const message =
    'Other requests use all the memory for lists of files (limits.memory). Try again in a moment, or send the files in a form.'
  return new UploadError('overloaded', message, { retryAfterS: 5 })
}

function storageError(error: unknown, { disk }: Spool): never {
  if (!isStorageFull(error)) throw error
  throw new UploadError(
    'insufficient_storage',
    `${disk} is full. Free some space there, then send it again.`,
    { cause: error },
  )
}
