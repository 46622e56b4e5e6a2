import { UploadError } from '../errors.ts'

/** An operator has to fix it, which can take a while. It is still right for a client to wait and retry. */
export function storeUnavailable(message: string, cause?: unknown): UploadError {
  return new UploadError('store_unavailable', message, { cause, retryAfterS: 5 })
}
