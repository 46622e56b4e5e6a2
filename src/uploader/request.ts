import { createHash } from 'node:crypto'
import type { Payload } from '../payload/index.ts'
import type { RequestKey } from '../store/requests.ts'
import { newUploadId } from '../store/upload-id.ts'
import type { NewUpload } from '../store/upload-rows.ts'
import type { Destination } from './destinations.ts'
import { type Caller, type Input, keptOrigin, type Outcome, type UploadOptions } from './input.ts'

export interface UploadRequest {
  readonly destination: Destination
  /** The caller disposes of the payloads of form inputs. */
  readonly inputs: readonly Input[]
  readonly caller: Caller
  readonly requestId: string
  /** URL of this server as the client sees it, with a final slash. Relative URLs of providers start there. */
  readonly baseUrl: string
  /** The client's. It cancels what has not begun to be sent. */
  readonly signal: AbortSignal
  /** Whether the signal also cancels what is being sent, because the process ends with it. */
  readonly abortsSending?: boolean
  readonly options?: UploadOptions
  /** Its `Idempotency-Key`. The server handles several requests with one key once. */
  readonly idempotency?: RequestKey | undefined
  /** Rejects a payload by throwing an error, before it is stored. */
  accept?(payload: Payload): void
  /** Called for each input when its outcome is saved. */
  onOutcome?(outcome: Outcome): void
}

/** @param owner the process @param now milliseconds since the epoch */
export const newUpload = (
  { caller, destination, requestId }: Pick<UploadRequest, 'caller' | 'destination' | 'requestId'>,
  inputs: readonly { readonly origin: string }[],
  owner: string,
  now: number,
): NewUpload => ({
  ...{ id: newUploadId(now), createdAt: now, owner, requestId, caller: caller.name },
  destination: destination.id,
  origins: inputs.map(({ origin }) => keptOrigin(origin)),
})

/** Disposes of the payloads of form inputs. */
export async function discard(inputs: readonly Input[]): Promise<void> {
  for (const input of inputs) {
    if (input.kind === 'form' && 'dispose' in input.payload) await input.payload.dispose()
  }
}

/**
 * Hash of what a request asks for: its destination, its options and its inputs. A file counts by its name and bytes, even if
 * it was not stored. Undefined if some bytes are unknown, because another request could have the same hash then.
 *
 * @param options those that are part of the fingerprint, always in the same order
 */
export function fingerprintOf(
  destination: string,
  options: object,
  inputs: readonly Input[],
): string | undefined {
  const isKnown = (input: Input) => input.kind !== 'form' || input.payload.sha256 !== undefined
  if (!inputs.every(isKnown)) return undefined
  const text = JSON.stringify(options)
  const asked = inputs.map(input =>
    input.kind === 'form' ? [input.kind, input.origin, input.payload.sha256] : [input.kind, input.origin],
  )
  return createHash('sha256')
    .update(JSON.stringify([text === '{}' ? destination : destination + text, asked]))
    .digest('hex')
}
