import type { Readable } from 'node:stream'
import { systemCode, UploadError } from '../../errors.ts'

export interface Part {
  readonly PartNumber: number
  readonly Body: Buffer
  /** Gives the memory back for a later part. */
  release(): void
}

/**
 * Cuts a body into parts of the same size. Several may read from it at once: each gets the next part. The memory of
 * parts is used again, since the garbage collector comes too late for so much of it.
 *
 * @param size what the parts have to come to, in bytes
 */
export async function* readParts(
  body: Readable,
  partSize: number,
  size: number,
): AsyncGenerator<Part, void, undefined> {
  const free: Buffer[] = []
  const take = (): Buffer => free.pop() ?? Buffer.allocUnsafeSlow(partSize)
  let PartNumber = 1
  let [part, filled, total] = [take(), 0, 0]
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      total += chunk.length
      for (let rest = chunk; rest.length > 0; ) {
        const copied = rest.copy(part, filled)
        filled += copied
        rest = rest.subarray(copied)
        if (filled < partSize) continue
        const full = part
        yield { PartNumber: PartNumber++, Body: full, release: () => free.push(full) }
        ;[part, filled] = [take(), 0]
      }
    }
  } catch (error) {
    throw readFailure(error)
  }
  if (total !== size) throw readFailure(new Error(`${total} bytes instead of ${size}`))
  if (filled > 0) yield { PartNumber, Body: part.subarray(0, filled), release() {} }
}

/** The end of a sentence, for a body that could not be read to its end. */
export function readFailure(error: unknown): UploadError {
  const reason = systemCode(error) ?? (error instanceof Error ? error.message : String(error))
  return new UploadError('delivery_failed', `reading it failed here (${reason})`, { cause: error })
}
