import type { IncomingHttpHeaders } from 'node:http'
import { excerpt } from '../../http/excerpt.ts'
import type { RawReply } from '../../http/exchange.ts'
import {
  isTransient as isTransientCode,
  isTransientStatus,
  networkCodeOf,
  parseRetryAfter,
} from '../../http/network.ts'
import { Problem } from '../../problem.ts'
import { readElement } from '../shared/xml-path.ts'

/** The parts of an error response that explain the error. */
export interface RefusalFacts {
  /** HTTP status. */
  readonly status: number
  /** Code in the error document, such as `NoSuchBucket`. Empty if the response has no code. */
  readonly code: string
  readonly message: string
  /** Region of the bucket in the error document. */
  readonly region: string | undefined
  /** Hostname in the error document, to use instead. */
  readonly endpoint: string | undefined
  /** Seconds by which the service's clock is ahead of this one. Undefined if the response has no time. */
  readonly skewS: number | undefined
  readonly requestId: string | undefined
  readonly headers: IncomingHttpHeaders
}

/** A response with an error status. */
export class Refusal extends Error {
  readonly facts: RefusalFacts

  constructor(reply: RawReply) {
    super(`status ${reply.status}`)
    this.facts = readFacts(reply)
  }
}

function readFacts({ status, headers, text }: RawReply): RefusalFacts {
  const read = (name: string): string | undefined => readElement(text, name)
  // They are names, and messages quote them.
  const short = (name: string): string | undefined => {
    const text = read(name)
    return text && excerpt(text)
  }
  const time = Date.parse(read('ServerTime') ?? headers.date ?? '')
  return {
    status,
    code: short('Code') ?? '',
    message: read('Message') ?? '',
    region: short('Region'),
    endpoint: short('Endpoint'),
    skewS: Number.isNaN(time) ? undefined : Math.round((time - Date.now()) / 1000),
    requestId: headers['x-amz-request-id']?.toString(),
    headers,
  }
}

/** Matches the request ID headers of Amazon, Alibaba, Tencent, Huawei, Volcengine and Qiniu, which no web server sends. */
const REQUEST_ID_HEADER = /^x-(?:amz|oss|cos|obs|tos)-(?:request-id|id-2|version-id)$|^x-reqid$/

/** Returns whether a response is from an S3 service, and not from a web server at the same URL. */
export function isFromService(headers: IncomingHttpHeaders): boolean {
  return Object.keys(headers).some(name => REQUEST_ID_HEADER.test(name))
}

/** Codes of transient failures. After NoSuchUpload, the multipart upload was aborted by another program, or is already complete. */
const TRANSIENT_CODES = new Set(
  'InternalError RequestTimeout ServiceUnavailable SlowDown OperationAborted NoSuchUpload'.split(' '),
)
/** MinIO's code for a full disk. Its status 507 is transient at other services. */
const FULL_CODE = 'XMinioStorageFull'

/** Returns whether a failure is transient, so that a retry may succeed. */
export function isTransient(error: unknown): boolean {
  if (error instanceof Problem) return error.retryable
  if (!(error instanceof Refusal)) return isTransientCode(networkCodeOf(error))
  const { code, status } = error.facts
  return TRANSIENT_CODES.has(code) || (code !== FULL_CODE && isTransientStatus(status))
}

/** Returns the `Retry-After` of the service, in seconds. */
export function retryAfterOf(error: unknown): number | undefined {
  if (error instanceof Refusal) return parseRetryAfter(error.facts.headers['retry-after'])
  return error instanceof Problem ? error.retryAfterS : undefined
}
