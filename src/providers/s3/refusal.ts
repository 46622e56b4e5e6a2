import type { HttpReply, Refusal } from '../../http/client.ts'
import { excerpt } from '../../http/excerpt.ts'
import { isTransientStatus } from '../../http/network.ts'
import { Problem } from '../../problem.ts'
import { type Cause, type Causes, causeOf } from '../shared/causes.ts'
import { readElement } from '../shared/xml-path.ts'
import type { S3Settings } from './settings.ts'

const PATH_STYLE = { why: 'it rejects path-style requests', advice: 'Set "addressingStyle" to "virtual".' }
const NO_BUCKET = {
  why: 'the bucket "{bucket}" does not exist',
  advice: 'Check "bucket", "region", and "addressingStyle", which is "{style}".',
}
const OLD_TOKEN = { why: 'the session token is invalid or expired', advice: 'Get new temporary credentials.' }
const NO_SPACE = {
  why: 'no space left, or the quota is exceeded',
  advice: 'Free some space there, or raise the quota.',
  retryable: false,
}

/** Causes by error code of Amazon, Alibaba, Tencent, Volcengine and MinIO. */
const CAUSES: Causes = {
  SecondLevelDomainForbidden: PATH_STYLE,
  PathStyleDomainForbidden: PATH_STYLE,
  InvalidPathAccess: PATH_STYLE,
  InvalidAccessKeyId: { why: 'unknown access key ID', advice: 'Check "accessKeyId".' },
  SignatureDoesNotMatch: {
    why: 'the signature does not match',
    advice: 'Check "secretAccessKey", and "region", which is "{region}".',
  },
  ExpiredToken: OLD_TOKEN,
  InvalidToken: OLD_TOKEN,
  NoSuchBucket: NO_BUCKET,
  InvalidBucketName: NO_BUCKET,
  AccessControlListNotSupported: {
    why: 'the bucket does not allow ACLs',
    advice: 'Remove "acl" and use a bucket policy instead.',
  },
  QuotaExceeded: NO_SPACE,
  XMinioStorageFull: NO_SPACE,
  InvalidStorageClass: { why: 'unknown storage class', advice: 'Check "storageClass".' },
  KMS: { why: "the KMS key can't be used", advice: 'Check "sseKmsKeyId" and its permissions.' },
}

/** Codes of transient failures. After NoSuchUpload, the multipart upload was aborted by another program, or is already complete. */
const TRANSIENT_CODE =
  /^(?:InternalError|RequestTimeout|ServiceUnavailable|SlowDown|OperationAborted|NoSuchUpload)$/
const WRONG_CLOCK = /^RequestTimeTooSkewed$|^RequestIsExpired$/
const WRONG_REGION =
  /^(?:AuthorizationHeaderMalformed|IllegalLocationConstraintException|InvalidRegion|(?:Permanent|Temporary)Redirect)$/

/** Clock skew above which services may reject signatures (Amazon: 15 minutes; some services: less), in seconds. */
const MAX_SKEW_S = 4 * 60

/** Returns the code in the error document of a response, such as `NoSuchBucket`. */
export function codeOf({ text }: HttpReply): string | undefined {
  return readElement(text, 'Code')
}

/** @param permission what the policy of the bucket must allow for the request */
export function explainRefusal(reply: HttpReply, settings: S3Settings, permission: string): Refusal {
  const code = codeOf(reply) ?? ''
  const { why: meaning, advice, ...cause } = diagnose(reply, code, settings, permission)
  const said = [code, readElement(reply.text, 'Message')].filter(Boolean).join(': ').replace(/\.$/, '')
  return {
    meaning,
    reason: said || (meaning === undefined ? reply.text : ''),
    advice,
    retryable: TRANSIENT_CODE.test(code) || isTransientStatus(reply.status),
    ...cause,
  }
}

function diagnose(
  { status, headers, text }: HttpReply,
  code: string,
  { region, style, options }: S3Settings,
  permission: string,
): Cause {
  const { why, advice, ...known } = causeOf(CAUSES, code.replace(/^KMS\..*/s, 'KMS'))
  if (why !== undefined)
    return {
      ...known,
      why: why.replace('{bucket}', () => options.bucket),
      advice: advice?.replace('{region}', () => region).replace('{style}', style),
    }
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
    return {
      why: `the region is wrong: requests are signed for "${region}", but ${right}${host}`,
      advice: 'Set "region" and "endpoint" to those of the bucket.',
    }
  }
  if (isRedirect) return { advice: 'Set "endpoint" to the final URL of the S3 API.' }
  if (status === 200) return { why: 'it failed nevertheless' }
  if ([400, 401, 403].includes(status) && Math.abs(skewS) > MAX_SKEW_S) return wrongClock(skewS)
  if (status === 401 || status === 403) {
    const acl = options.acl && permission.startsWith('s3:PutObject') ? ' and s3:PutObjectAcl' : ''
    const allow = `Allow ${permission}${acl} on the bucket "${options.bucket}"`
    // A response to HEAD has no body that would tell invalid credentials from missing permissions.
    return code === ''
      ? { why: 'access denied, or invalid credentials', advice: `${allow}, or check "accessKeyId".` }
      : { why: 'access denied', advice: `${allow}.` }
  }
  const optional = ['acl', 'storageClass', 'serverSideEncryption', 'sseKmsKeyId'] as const
  const given = optional.filter(name => Boolean(options[name])).map(name => `"${name}"`)
  return (status === 400 || status === 501) && given.length > 0
    ? { why: `it may not support ${given.join(' or ')}`, advice: 'If so, remove that option.' }
    : {}
}

function wrongClock(skewS: number): Cause {
  const how = Number.isNaN(skewS)
    ? 'it differs too much from the clock of the service'
    : `it is ${Math.round(Math.abs(skewS) / 60)} minutes ${skewS > 0 ? 'slow' : 'fast'}`
  return { why: `the clock of this machine is wrong: ${how}`, advice: 'Set it, for example with NTP.' }
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
