import { UploadError } from '../../src/errors.ts'
import { beginTimeLimit } from '../../src/flow/time-limit.ts'
import type { Stored, UploadObject } from '../../src/providers/contract.ts'
import type { Destination } from '../../src/uploader/destinations.ts'
import { sendObject } from '../../src/uploader/send.ts'

/** Sends an object as an upload does: again after failures that pass, until the time is up or the process ends. */
export async function deliverObject(
  destination: Destination,
  object: UploadObject,
  { timeoutMs, retries }: { readonly timeoutMs: number; readonly retries: number },
  ending = new AbortController().signal,
): Promise<Stored> {
  const late = () => new UploadError('destination_timeout', 'the time is up')
  const limit = beginTimeLimit(timeoutMs, ending, late)
  try {
    return await sendObject(destination, object, retries, limit)
  } finally {
    limit.end()
  }
}
