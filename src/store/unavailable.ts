import { UploadError } from '../errors.ts'

/** Somebody has to do something about it, which may take; a client that waits and tries again is right all the same. */
export function storeUnavailable(message: string, cause?: unknown): UploadError {
  return new UploadError('store_unavailable', message, { cause, retryAfterS: 5 })
}
