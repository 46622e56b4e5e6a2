import type { HttpReply } from '../../http/client.ts'
import { excerpt } from '../../http/excerpt.ts'
import { isTransientStatus, parseRetryAfter } from '../../http/network.ts'
import { Problem } from '../../problem.ts'
import { readElement } from '../shared/xml-path.ts'
import type { S3Settings } from './settings.ts'

/** The reason without the point, and the advice without its point, because the response follows it. */
type Explanation = readonly [why?: string, advice?: string]

/** Codes of transient failures. After NoSuchUpload, the multipart upload was aborted by another program, or is already complete. */
const TRANSIENT_CODE =
  /^(?:InternalError|RequestTimeout|ServiceUnavailable|SlowDown|OperationAborted|NoSuchUpload)$/
/** MinIO's code for a full disk. Its status 507 is transient at other services. */
const FULL_CODE = 'XMinioStorageFull'

/** A response with an error status. */
export class Refusal extends Problem {
  readonly status: number
  /** Code in the error document, such as `NoSuchBucket`. Empty if the response has no code. */
  readonly s3Code: string
  readonly headers: HttpReply['headers']

  /** @param permission what the policy of the bucket must allow for the request */
  constructor(reply: HttpReply, host: string, settings: S3Settings, permission: string) {
    const { status, headers, text } = reply
    const [code = '', message] = ['Code', 'Message'].map(name => quote(readElement(text, name)))
    const answer = [host, 'returned', status, code].filter(Boolean).join(' ')
    const said = message ? `${answer}: ${message.replace(/\.$/, '')}` : answer
    const [why, advice] = explain(reply, code, settings, permission)
    const request = headers['x-amz-request-id']
    const retryAfterS = parseRetryAfter(headers['retry-after'])
    super(why ?? said, {
      advice: advice && `${advice} (${said}).`,
      // For the log: without the whole response.
      cause: new Error([status, code, message, request && `(request ${request})`].filter(Boolean).join(' ')),
      retryable: TRANSIENT_CODE.test(code) || (code !== FULL_CODE && isTransientStatus(status)),
      ...(retryAfterS !== undefined && { retryAfterS }),
    })
    this.status = status
    this.s3Code = code
    this.headers = headers
  }
}

const quote = (text: string | undefined) => text && excerpt(text)

/** What codes mean that have one reason. They are those of Amazon, and of Alibaba, Tencent, Volcengine and MinIO. */
const CODES: readonly [codes: RegExp, explain: (settings: S3Settings) => Explanation][] = [
  [
    /^(?:SecondLevelDomainForbidden|PathStyleDomainForbidden|InvalidPathAccess)$/,
    () => ['the service rejects path-style requests', 'Set "addressingStyle" to "virtual"'],
  ],
  [/^InvalidAccessKeyId$/, () => ['unknown access key ID', 'Check "accessKeyId"']],
  [
    /^SignatureDoesNotMatch$/,
    ({ region }) => [
      'the signature does not match',
      `Check "secretAccessKey", and "region", which is "${region}"`,
    ],
  ],
  [
    /^(?:Expired|Invalid)Token$/,
    () => ['the session token is invalid or expired', 'Get new temporary credentials'],
  ],
  [
    /^(?:NoSuchBucket|InvalidBucketName)$/,
    ({ bucket, style }) => [
      `the bucket "${bucket}" does not exist`,
      `Check "bucket", "region", and "addressingStyle", which is "${style}"`,
    ],
  ],
  [
    /^AccessControlListNotSupported$/,
    () => ['the bucket does not allow ACLs', 'Remove "acl" and use a bucket policy instead'],
  ],
  [
    /^(?:QuotaExceeded|XMinioStorageFull)$/,
    () => ['no space left, or the quota is exceeded', 'Free some space there, or raise the quota'],
  ],
  [/^InvalidStorageClass$/, () => ['unknown storage class', 'Check "storageClass"']],
  [/^KMS\./, () => ["the KMS key can't be used", 'Check "sseKmsKeyId" and its permissions']],
]
const WRONG_CLOCK = /^RequestTimeTooSkewed$|^RequestIsExpired$/
const WRONG_REGION =
  /^(?:AuthorizationHeaderMalformed|IllegalLocationConstraintException|InvalidRegion|(?:Permanent|Temporary)Redirect)$/

/** Clock skew above which services may reject signatures (Amazon: 15 minutes; some services: less), in seconds. */
const MAX_SKEW_S = 4 * 60

function explain(
  { status, headers, text }: HttpReply,
  code: string,
  settings: S3Settings,
  permission: string,
): Explanation {
  const [, known] = CODES.find(([codes]) => codes.test(code)) ?? []
  if (known) return known(settings)
  // They are names, and messages quote them.
  const [endpoint, named, time] = ['Endpoint', 'Region', 'ServerTime'].map(name =>
    quote(readElement(text, name)),
  )
  // Positive: the service's clock is ahead. Not a number: the response has no time.
  const skewS = Math.round((Date.parse(time ?? headers['date'] ?? '') - Date.now()) / 1000)
  const region = named ?? quote(headers['x-amz-bucket-region'])
  const isRedirect = status >= 300 && status < 400
  const to = isRedirect && headers['location']
  const mayBeClock = [400, 401, 403].includes(status) && Math.abs(skewS) > MAX_SKEW_S
  if (WRONG_CLOCK.test(code)) return wrongClock(skewS)
  // Alibaba returns the correct endpoint in an AccessDenied error.
  const isElsewhere =
    endpoint !== undefined || (headers['x-amz-bucket-region'] ?? settings.region) !== settings.region
  if (WRONG_REGION.test(code) || isElsewhere || (isRedirect && !to))
    return wrongRegion(settings, region, endpoint)
  if (to) return [`the endpoint redirects to ${excerpt(to)}`, 'Set "endpoint" to the final URL of the S3 API']
  if (mayBeClock) return wrongClock(skewS)
  if (status === 401 || status === 403) return noPermission(code, settings, permission)
  return status === 400 || status === 501 ? refusedOption(settings) : []
}

function wrongClock(skewS: number): Explanation {
  const how = Number.isNaN(skewS)
    ? 'it differs too much from the clock of the service'
    : `it is ${Math.round(Math.abs(skewS) / 60)} minutes ${skewS > 0 ? 'slow' : 'fast'}`
  return [`the clock of this machine is wrong: ${how}`, 'Set it, for example with NTP']
}

function wrongRegion(
  { region }: S3Settings,
  found: string | undefined,
  endpoint: string | undefined,
): Explanation {
  const right = found ? `the bucket is in "${found}"` : 'the bucket is in another region'
  const host = endpoint ? `, at "${endpoint}"` : ''
  return [
    `the region is wrong: requests are signed for "${region}", but ${right}${host}`,
    'Set "region" and "endpoint" to those of the bucket',
  ]
}

function noPermission(code: string, { bucket, options }: S3Settings, permission: string): Explanation {
  const acl = options.acl && permission.startsWith('s3:PutObject') ? ' and s3:PutObjectAcl' : ''
  const allow = `Allow ${permission}${acl} on the bucket "${bucket}"`
  // A response to HEAD has no body that would tell invalid credentials from missing permissions.
  if (code === '') return ['access denied, or invalid credentials', `${allow}, or check "accessKeyId"`]
  return ['access denied', allow]
}

function refusedOption({ options }: S3Settings): Explanation {
  const optional = ['acl', 'storageClass', 'serverSideEncryption', 'sseKmsKeyId'] as const
  const given = optional.filter(name => Boolean(options[name])).map(name => `"${name}"`)
  if (given.length === 0) return []
  return [`the service may not support ${given.join(' or ')}`, 'If so, remove that option']
}

/** Matches the request ID headers of Amazon, Alibaba, Tencent, Huawei, Volcengine and Qiniu, which no web server sends. */
const REQUEST_ID_HEADER = /^x-(?:amz|oss|cos|obs|tos)-(?:request-id|id-2|version-id)$|^x-reqid$/

/** Returns whether a response is from an S3 service, and not from a web server at the same URL. */
export function isFromService(headers: HttpReply['headers']): boolean {
  return Object.keys(headers).some(name => REQUEST_ID_HEADER.test(name))
}

/**
 * Makes the error for a web server that returns 200 for every request. A service may omit the ETag, as OpenStack Swift does
 * after a newer put with the same key has finished first, but then it sends a request ID.
 */
export function notS3(lacks = 'has neither an ETag nor a request ID'): Problem {
  return new Problem(`the response ${lacks}, so it is not from an S3 service`, {
    advice: 'Check "endpoint".',
  })
}
