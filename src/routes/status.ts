import type { ErrorCode } from '../errors.ts'
import { keysOf } from '../members.ts'

/** HTTP status of each error code. */
const STATUS: Record<ErrorCode, number> = {
  invalid_request: 400,
  no_file: 400,
  unknown_destination: 400,
  ambiguous_destination: 400,
  path_forbidden: 400,
  expiry_forbidden: 400,
  unauthorized: 401,
  destination_forbidden: 403,
  source_forbidden: 403,
  origin_forbidden: 403,
  not_found: 404,
  unknown_finalization: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  too_large: 413,
  type_forbidden: 415,
  source_failed: 422,
  idempotency_key_reused: 422,
  rate_limited: 429,
  quota_exceeded: 429,
  internal_error: 500,
  destination_failed: 502,
  overloaded: 503,
  shutting_down: 503,
  database_unavailable: 503,
  identity_unavailable: 503,
  destination_timeout: 504,
  insufficient_storage: 507,
}

/** All error codes. */
export const ERROR_CODES = keysOf(STATUS)

/** HTTP status of an error code. */
export function statusOf(code: ErrorCode): number {
  return STATUS[code]
}
