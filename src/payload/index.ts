import { createHash } from 'node:crypto'
import { type FileHandle, unlink } from 'node:fs/promises'
import { asUploadError, isStorageFull, UploadError } from '../errors.ts'
import { type Payload, payloadInFile, payloadInMemory } from './bytes.ts'
import { memoryForRequests } from './container-memory.ts'
import { sniffLength, sniffType } from './sniff.ts'
import type { Spool } from './spool.ts'

export type { Payload } from './bytes.ts'

/** Maximum size of a small payload, which is kept in memory while the budget allows it, bytes. */
const SMALL_BYTES = 512 * 1024
/** Maximum size of any other payload in memory, bytes. */
const LARGE_BYTES = 8 * 1024 * 1024
/** Part of the budget that must be unused for payloads that are not small to stay in memory. */
const SPARE = 2 / 3
/** Bytes that a request may always hold in addition to its payloads, so that large requests can't block small ones. */
const ALWAYS_TAKEN_BYTES = 256 * 1024
/** Default memory budget of all payloads together, bytes. */
const BUDGET_BYTES = 64 * 1024 * 1024
/** Bytes that are gathered for one write to the disk. */
const WRITTEN_BYTES = 512 * 1024

interface PayloadOptions {
  name: string
  folders?: readonly string[]
  /** Where payloads are written that are too large for memory. */
  spool: Spool
  /** Maximum size, bytes. */
  limit: number
}

/** A body that could not be kept. */
export interface RejectedBody {
  readonly error: UploadError
  /** Hash of its bytes, hex. Undefined if they were not read completely. */
  readonly sha256: string | undefined
}

/**
 * Makes payloads that share one memory budget, which includes what waits for the disk. When it is used up, payloads are written
 * to disk from their first byte, and nothing more is read of a body until its bytes are written (backpressure). Larger payloads
 * stay in memory while little of it is used.
 */
export interface Payloads {
  /**
   * Reads a whole body into a payload.
   * @throws UploadError `too_large` beyond the limit, `insufficient_storage` if the disk is full; whatever the body throws
   */
  read(body: Chunks, options: PayloadOptions): Promise<Payload>
  /** The same for a part of a form. It is read to its end in any case, because other parts follow, and its hash counts. */
  readPart(body: Chunks, options: PayloadOptions): Promise<Payload | RejectedBody>
  /**
   * Counts bytes that a request holds in addition to its payloads.
   *
   * @returns gives them back, once
   * @throws UploadError `overloaded` if they don't fit. A single request may exceed the budget
   */
  take(bytes: number): () => void
  /** Changes the budget. Payloads in memory stay there, and count. */
  resize(budget: number): void
}

/** The chunks must not be changed afterwards. */
type Chunks = AsyncIterable<Uint8Array>

/**
 * @param budget in bytes. Each payload may exceed it by one chunk
 * @param container memory limit of the container, bytes. The budget is an eighth of what Node leaves of it at most
 */
export function createPayloads(budget: number = BUDGET_BYTES, container?: number): Payloads {
  const most = memoryForRequests(container) / 8
  const first = Math.min(budget, most)
  const memory: Memory = { budget: first, free: first, taken: 0 }
  return {
    async read(body, options) {
      const result = await receive(body, options, memory, false)
      if ('error' in result) throw result.error
      return result
    },
    readPart: (body, options) => receive(body, options, memory, true),
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
  }
}

/** The state that incoming payloads share. */
interface Memory {
  /** Bytes. */
  budget: number
  /** Bytes that are left. Negative if the budget is exceeded. */
  free: number
  /** Bytes that requests hold in addition to their payloads. */
  taken: number
}

const NO_BYTES = Buffer.alloc(0)
/** Error message for a file that the server itself could not buffer. */
const NOT_KEPT = 'The server could not buffer the file. Its log has the reason.'

/** @param readsOn whether the body is read to its end even if it is not kept. The failure is then returned, not thrown */
async function receive(
  body: Chunks,
  { name, folders = [], spool, limit }: PayloadOptions,
  memory: Memory,
  readsOn: boolean,
): Promise<Payload | RejectedBody> {
  const hash = createHash('sha256')
  let size = 0
  let head: Uint8Array = NO_BYTES
  let chunks: Uint8Array[] = []
  /** Bytes of `chunks`, which count against the budget. */
  let held = 0
  /** Undefined while the payload is in memory. */
  let spooled: { readonly path: string; readonly file: FileHandle } | undefined
  let failure: UploadError | undefined

  const mayStay = () =>
    size <= SMALL_BYTES || (!spool.isLinked && size <= LARGE_BYTES && memory.free >= memory.budget * SPARE)

  async function write(): Promise<void> {
    spooled ??= await spool.create()
    const { bytesWritten } = await spooled.file.writev(chunks)
    // Only a disk that is full takes a part. Writing the rest gives the error.
    if (bytesWritten < held) await spooled.file.writeFile(Buffer.concat(chunks).subarray(bytesWritten))
    release()
  }

  function release(): void {
    memory.free += held
    held = 0
    chunks = []
  }

  async function discard(): Promise<void> {
    release()
    await spooled?.file.close().catch(() => {})
    if (spooled) await unlink(spooled.path).catch(() => {})
  }

  function fail(error: unknown): void {
    const reason = storageError(error, spool)
    if (!readsOn) throw reason
    failure = asUploadError(reason, NOT_KEPT)
    release()
  }

  try {
    for await (const chunk of body) {
      size += chunk.length
      hash.update(chunk)
      if (failure) continue
      if (head.length < sniffLength(head)) head = lengthen(head, chunk)
      chunks.push(chunk)
      held += chunk.length
      memory.free -= chunk.length
      const isTooMuch = memory.free < 0 || (spooled ? held >= WRITTEN_BYTES : !mayStay())
      if (size > limit) fail(tooLarge(name, limit))
      else if (isTooMuch) await write().catch(fail)
    }
    if (spooled && !failure) await write().catch(fail)
    const sha256 = hash.digest('hex')
    if (failure) {
      await discard()
      return { error: failure, sha256 }
    }
    const identity = { name, folders, size, sha256, ...sniffType(head, name) }
    if (!spooled) {
      const bytes = held
      return payloadInMemory(chunks, identity, () => {
        memory.free += bytes
      })
    }
    await spooled.file.close().catch(error => {
      throw storageError(error, spool)
    })
    return payloadInFile(spooled.path, identity)
  } catch (error) {
    await discard()
    throw error
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

function storageError(error: unknown, { disk }: Spool): unknown {
  if (!isStorageFull(error)) return error
  return new UploadError(
    'insufficient_storage',
    `${disk} is full. Free some space there, then send it again.`,
    { cause: error },
  )
}
