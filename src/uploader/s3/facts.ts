/** What an error of the SDK tells. */
export interface Facts {
  /** HTTP status; undefined when there was no answer. */
  readonly status: number | undefined
  /** Of the error document, such as `NoSuchBucket`; empty when the answer had none. */
  readonly code: string
  readonly message: string
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  /** Further members of the error document, such as `Region`. */
  readonly details: Readonly<Record<string, unknown>>
}

/** What the SDK calls an error without a name of its own. */
const NAMELESS = /^(?:\d+|Error|SyntaxError|TypeError|Unknown|UnknownError|S3ServiceException)$/

/** The SDK leaves the answer in a hidden field, also where it could not read it. */
interface SdkError {
  readonly $metadata?: { readonly httpStatusCode?: number }
  readonly $response?: { readonly statusCode?: number; readonly headers?: Record<string, string> }
}

export function readFacts(error: unknown): Facts {
  const details = (typeof error === 'object' && error !== null ? error : {}) as Record<string, unknown>
  const { $metadata, $response } = details as SdkError
  const { name, message } = error instanceof Error ? error : { name: '', message: String(error) }
  return {
    status: $metadata?.httpStatusCode ?? $response?.statusCode,
    code: NAMELESS.test(name) ? '' : name,
    message: NAMELESS.test(message) ? '' : message,
    headers: $response?.headers ?? {},
    details,
  }
}

/** Seconds by which the server's clock is ahead of ours; undefined when it does not say. */
export function skewOf({ headers, details }: Facts): number | undefined {
  const time = Date.parse(String(details['ServerTime'] ?? headers['date']))
  return Number.isNaN(time) ? undefined : Math.round((time - Date.now()) / 1000)
}

/** The error without the answer, the request and its sockets, which hang on it and would all go to the log. */
export function slimDown(error: unknown): unknown {
  if (!(error instanceof Error) || !('$metadata' in error)) return error
  const { requestId = '' } = (error.$metadata ?? {}) as { requestId?: string }
  const slim = new Error(`${error.message}${requestId && ` (request ${requestId})`}`)
  return Object.assign(slim, { name: error.name, stack: error.stack })
}
