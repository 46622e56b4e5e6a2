import type { IncomingHttpHeaders } from 'node:http'
import { UploadError } from '../../errors.ts'
import type { RawReply } from '../../http/exchange.ts'
import { isPassing, isPassingStatus, networkCodeOf, parseRetryAfter } from '../../http/network.ts'
import { readElement } from '../shared/xml-path.ts'

/** What a refusal tells. */
export interface RefusalFacts {
  /** HTTP status. */
  readonly status: number
  /** Of the error document, such as `NoSuchBucket`; empty when the answer had none. */
  readonly code: string
  readonly message: string
  /** Of the bucket, as the document says. */
  readonly region: string | undefined
  /** Host to ask instead, as the document says. */
  readonly endpoint: string | undefined
  /** Seconds by which the server's clock is ahead of ours; undefined when it does not say. */
  readonly skewS: number | undefined
  readonly requestId: string | undefined
  readonly headers: IncomingHttpHeaders
}

/** An answer that says no. */
export class Refusal extends Error {
  readonly facts: RefusalFacts

  constructor(reply: RawReply) {
    super(`status ${reply.status}`)
    this.facts = readFacts(reply)
  }
}

function readFacts({ status, headers, text }: RawReply): RefusalFacts {
  const read = (name: string): string | undefined => readElement(text, name)
  const time = Date.parse(read('ServerTime') ?? headers.date ?? '')
  return {
    status,
    code: read('Code') ?? '',
    message: read('Message') ?? '',
    region: read('Region'),
    endpoint: read('Endpoint'),
    skewS: Number.isNaN(time) ? undefined : Math.round((time - Date.now()) / 1000),
    requestId: headers['x-amz-request-id']?.toString(),
    headers,
  }
}

/** What Amazon, and Alibaba, Tencent, Huawei, Volcengine and Qiniu in its place, give to an answer; no web server does. */
const OF_A_SERVICE = /^x-(?:amz|oss|cos|obs|tos)-(?:request-id|id-2|version-id)$|^x-reqid$/

/** Whether an answer is that of an S3 service, and not of a page that stands at its address. */
export function isFromService(headers: IncomingHttpHeaders): boolean {
  return Object.keys(headers).some(name => OF_A_SERVICE.test(name))
}

/** Failures that pass. An upload in parts that is gone was taken back by somebody, or is complete already. */
const PASSING_CODES = new Set(
  'InternalError RequestTimeout ServiceUnavailable SlowDown OperationAborted NoSuchUpload'.split(' '),
)
/** Of MinIO, with the status 507 that passes elsewhere. */
const FULL_CODE = 'XMinioStorageFull'

/** Whether sending the same again may help. */
export function mayPass(error: unknown): boolean {
  if (error instanceof UploadError) return error.retryable
  if (!(error instanceof Refusal)) return isPassing(networkCodeOf(error))
  const { code, status } = error.facts
  return PASSING_CODES.has(code) || (code !== FULL_CODE && isPassingStatus(status))
}

/** How long the service asks to wait, in seconds. */
export function retryAfterOf(error: unknown): number | undefined {
  if (error instanceof Refusal) return parseRetryAfter(error.facts.headers['retry-after'])
  return error instanceof UploadError ? error.retryAfterS : undefined
}
