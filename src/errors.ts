import { inspect } from 'node:util'
import { hideSignatures } from './mask.ts'

/** Every way a request or an input can fail, as named in the response's `code`. Statuses are decided in routes/status.ts. */
export type ErrorCode =
  | 'invalid_request'
  | 'no_file'
  | 'unknown_destination'
  | 'ambiguous_destination'
  | 'path_forbidden'
  | 'expiry_forbidden'
  | 'unauthorized'
  | 'destination_forbidden'
  | 'source_forbidden'
  | 'origin_forbidden'
  | 'not_found'
  | 'unknown_finalization'
  | 'method_not_allowed'
  | 'request_timeout'
  | 'too_large'
  | 'type_forbidden'
  | 'source_failed'
  | 'idempotency_key_reused'
  | 'rate_limited'
  | 'quota_exceeded'
  | 'internal_error'
  | 'destination_failed'
  | 'destination_timeout'
  | 'overloaded'
  | 'shutting_down'
  | 'database_unavailable'
  | 'identity_unavailable'
  | 'insufficient_storage'

export interface UploadErrorOptions {
  /** What was caught; goes to the log, never to a client. */
  cause?: unknown
  /** Seconds after which a repetition makes sense; becomes `Retry-After`. */
  retryAfterS?: number
  /** Whether delivering the same object again may help. Default false. */
  retryable?: boolean
  /** Further fields of the log line of the request, such as who sent it. */
  logged?: Readonly<Record<string, unknown>>
}

/** An expected failure. `message` may be shown to the client as it is. */
export class UploadError extends Error {
  readonly code: ErrorCode
  readonly retryAfterS: number | undefined
  readonly retryable: boolean
  readonly logged: Readonly<Record<string, unknown>> | undefined

  constructor(code: ErrorCode, message: string, options: UploadErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'UploadError'
    this.code = code
    this.retryAfterS = options.retryAfterS
    this.retryable = options.retryable ?? false
    this.logged = options.logged
  }
}

/**
 * Whatever was thrown while a file was handled, as the client may see it.
 *
 * @param message what is said where the reason is the server's own
 */
export function asUploadError(error: unknown, message: string): UploadError {
  if (error instanceof UploadError) return error
  return isStorageFull(error)
    ? new UploadError(
        'insufficient_storage',
        'The disk of upload-server is full. Free some space there, then send it again.',
        { cause: error },
      )
    : new UploadError('internal_error', message, { cause: error })
}

/** Message of a thrown value, error or not. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}

/** Maximum number of characters that are read from errors of other code. */
const THROWN_CHARACTERS = 10_000

/** Message of an error that other code has thrown. The message of a TypeError needs its name. */
export function describeThrown(error: unknown): string {
  return hideSignatures(wordsOf(error).slice(0, THROWN_CHARACTERS))
}

function wordsOf(error: unknown): string {
  if (typeof error === 'string') return error
  if (!(error instanceof Error))
    return `it threw a value that is not an error: ${inspect(error, { depth: 1 }).slice(0, 200)}`
  return `${['Error', 'UploadError'].includes(error.name) ? '' : `${error.name}: `}${error.message}`
}

/** The `code` of a Node system error (`ENOENT`, `ECONNRESET`), looked for along the chain of causes. */
export function systemCode(error: unknown): string | undefined {
  for (let e = error, depth = 0; e instanceof Error && depth < 5; e = e.cause, depth++) {
    const code: unknown = 'code' in e ? e.code : undefined
    if (typeof code === 'string' && /^E(?!RR_)[A-Z0-9_]+$/.test(code)) return code
  }
  return undefined
}

const FILE_ERRORS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or folder',
  ENOTDIR: 'no such file or folder',
  EISDIR: 'it is a directory',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'it is on a read-only file system',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  ELOOP: 'it is a symlink',
}

/** Why a file that the user named can't be read or written, as a clause. */
export function describeFileError(error: unknown): string {
  const code = systemCode(error) ?? ''
  return FILE_ERRORS[code] ?? (code || messageOf(error))
}

/** True for the errors a full disk, a quota or a read-only file system gives. */
export function isStorageFull(error: unknown): boolean {
  const code = systemCode(error)
  return code === 'ENOSPC' || code === 'EDQUOT' || code === 'EROFS'
}
