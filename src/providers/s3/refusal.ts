import type { HttpReply, Refusal } from '../../http/client.ts'
import { excerpt } from '../../http/excerpt.ts'
import { isTransientStatus } from '../../http/network.ts'
import { Problem } from '../../problem.ts'
import { readElement } from '../shared/xml-path.ts'
import type { S3Settings } from './settings.ts'

type Explanation = readonly [meaning?: string, advice?: string]

/** Codes of transient failures. After NoSuchUpload, the multipart upload was aborted by another program, or is already complete. */
const TRANSIENT_CODE =
  /^(?:InternalError|RequestTimeout|ServiceUnavailable|SlowDown|OperationAborted|NoSuchUpload)$/
/** MinIO's code for a full disk. Its status 507 is transient at other services. */
const FULL_CODE = 'XMinioStorageFull'
const WRONG_CLOCK = /^RequestTimeTooSkewed$|^RequestIsExpired$/
const WRONG_REGION =
  /^(?:AuthorizationHeaderMalformed|IllegalLocationConstraintException|InvalidRegion|(?:Permanent|Temporary)Redirect)$/

/** What other codes mean. They are those of Amazon, and of Alibaba, Tencent, Volcengine and MinIO. */
const CODES: readonly [codes: RegExp, meaning: string, advice: string][] = [
  [
    /^(?:SecondLevelDomainForbidden|PathStyleDomainForbidden|InvalidPathAccess)$/,
    'it rejects path-style requests',
    'Set "addressingStyle" to "virtual".',
  ],
  [/^InvalidAccessKeyId$/, 'unknown access key ID', 'Check "accessKeyId".'],
  [
    /^SignatureDoesNotMatch$/,
    'the signature does not match',
    'Check "secretAccessKey", and "region", which is "{region}".',
  ],
  [/^(?:Expired|Invalid)Token$/, 'the session token is invalid or expired', 'Get new temporary credentials.'],
  [
    /^(?:NoSuchBucket|InvalidBucketName)$/,
    'the bucket "{bucket}" does not exist',
    'Check "bucket", "region", and "addressingStyle", which is "{style}".',
  ],
  [
    /^AccessControlListNotSupported$/,
    'the bucket does not allow ACLs',
    'Remove "acl" and use a bucket policy instead.',
  ],
  [
    /^(?:QuotaExceeded|XMinioStorageFull)$/,
    'no space left, or the quota is exceeded',
    'Free some space there, or raise the quota.',
  ],
  [/^InvalidStorageClass$/, 'unknown storage class', 'Check "storageClass".'],
  [/^KMS\./, "the KMS key can't be used", 'Check "sseKmsKeyId" and its permissions.'],
]

/** Clock skew above which services may reject signatures (Amazon: 15 minutes; some services: less), in seconds. */
const MAX_SKEW_S = 4 * 60

/** Returns the code in the error document of a response, such as `NoSuchBucket`. */
export function codeOf({ text }: HttpReply): string | undefined {
  return readElement(text, 'Code')
}

/** @param permission what the policy of the bucket must allow for the request */
export function explainRefusal(reply: HttpReply, settings: S3Settings, permission: string): Refusal {
  const code = codeOf(reply) ?? ''
  const [meaning, advice] = diagnose(reply, code, settings, permission)
  const said = [code, readElement(reply.text, 'Message')].filter(Boolean).join(': ').replace(/\.$/, '')
  return {
    meaning,
    reason: said || (meaning === undefined ? reply.text : ''),
    advice,
    retryable: TRANSIENT_CODE.test(code) || (code !== FULL_CODE && isTransientStatus(reply.status)),
  }
}

function diagnose(
  { status, headers, text }: HttpReply,
  code: string,
  { region, style, options }: S3Settings,
  permission: string,
): Explanation {
  const [, meaning, advice] = CODES.find(([codes]) => codes.test(code)) ?? []
  if (meaning !== undefined && advice !== undefined)
    return [
      meaning.replace('{bucket}', () => options.bucket),
      advice.replace('{region}', () => region).replace('{style}', style),
    ]
  const [endpoint, named, time] = ['Endpoint', 'Region', 'ServerTime'].map(name => readElement(text, name))
  // Positive: the service's clock is ahead. Not a number: the response has no time.
  const skewS = Math.round((Date.parse(time ?? headers['date'] ?? '') - Date.now()) / 1000)
  if (WRONG_CLOCK.test(code)) return wrongClock(skewS)
  const found = headers['x-amz-bucket-region']
  const isRedirect = status >= 300 && status < 400
  // Alibaba returns the correct endpoint in an AccessDenied error.
  const isElsewhere = endpoint !== undefined || (found ?? region) !== region
  if (WRONG_REGION.test(code) || isElsewhere || (isRedirect && !headers['location'])) {
    const right = `the bucket is in ${named || found ? `"${excerpt(named ?? found ?? '')}"` : 'another region'}`
    const host = endpoint === undefined ? '' : `, at "${excerpt(endpoint)}"`
    return [
      `the region is wrong: requests are signed for "${region}", but ${right}${host}`,
      'Set "region" and "endpoint" to those of the bucket.',
    ]
  }
  if (isRedirect) return [undefined, 'Set "endpoint" to the final URL of the S3 API.']
  if (status === 200) return ['it failed nevertheless']
  if ([400, 401, 403].includes(status) && Math.abs(skewS) > MAX_SKEW_S) return wrongClock(skewS)
  if (status === 401 || status === 403) {
    const acl = options.acl && permission.startsWith('s3:PutObject') ? ' and s3:PutObjectAcl' : ''
    const allow = `Allow ${permission}${acl} on the bucket "${options.bucket}"`
    // A response to HEAD has no body that would tell invalid credentials from missing permissions.
    return code === ''
      ? ['access denied, or invalid credentials', `${allow}, or check "accessKeyId".`]
      : ['access denied', `${allow}.`]
  }
  const optional = ['acl', 'storageClass', 'serverSideEncryption', 'sseKmsKeyId'] as const
  const given = optional.filter(name => Boolean(options[name])).map(name => `"${name}"`)
  return (status === 400 || status === 501) && given.length > 0
    ? [`it may not support ${given.join(' or ')}`, 'If so, remove that option.']
    : []
}

function wrongClock(skewS: number): Explanation {
  const how = Number.isNaN(skewS)
    ? 'it differs too much from the clock of the service'
    : `it is ${Math.round(Math.abs(skewS) / 60)} minutes ${skewS > 0 ? 'slow' : 'fast'}`
  return [`the clock of this machine is wrong: ${how}`, 'Set it, for example with NTP.']
}

/** Matches the request ID headers of Amazon, Alibaba, Tencent, Huawei, Volcengine and Qiniu, which no web server sends. */
const REQUEST_ID_HEADER = /^x-(?:amz|oss|cos|obs|tos)-(?:request-id|id-2|version-id)$|^x-reqid$/

/** Returns whether a response is from an S3 service, and not from a web server at the same URL. */
export function isFromService({ headers }: HttpReply): boolean {
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
