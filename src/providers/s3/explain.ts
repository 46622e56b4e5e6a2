import { messageOf, UploadError } from '../../errors.ts'
import { excerpt } from '../../http/client.ts'
import { isNoTls, isUntrusted, networkCodeOf } from '../../http/network.ts'
import { isTransient, Refusal, type RefusalFacts, retryAfterOf } from './refusal.ts'
import type { S3Settings } from './settings.ts'

/** Clock skew above which services may reject signatures (Amazon: 15 minutes; some services: less), in seconds. */
const SKEW_S = 4 * 60

/** The operation that failed, as the beginning of a sentence, and the permission that it needs. */
export interface S3Action {
  /** For example `Could not store "a.png"`. */
  readonly what: string
  readonly permission: string
}

type Explanation = (settings: S3Settings, facts: RefusalFacts, action: S3Action) => string

const wrongRegion: Explanation = ({ region }, facts) => {
  const named = facts.headers['x-amz-bucket-region']?.toString()
  const found = facts.region ?? (named && excerpt(named))
  const right = found ? `the bucket is in "${found}"` : 'the bucket is in another region'
  const host = facts.endpoint ? `, at "${facts.endpoint}"` : ''
  return `the region is wrong: requests are signed for "${region}", but ${right}${host}. Set "region"`
}
const wrongStyle: Explanation = () =>
  'the service rejects path-style requests. Set "addressingStyle" to "virtual"'
const wrongClock: Explanation = (_, facts) =>
  `the clock of this machine is wrong: ${describeSkew(facts)}. Set it, for example with NTP`
const unknownKey: Explanation = () => 'unknown access key ID. Check "accessKeyId"'
const wrongSecret: Explanation = ({ region }) =>
  `the signature does not match. Check "secretAccessKey", and "region", which is "${region}"`
const expiredToken: Explanation = () =>
  'the session token is invalid or expired. Get new temporary credentials'
const noBucket: Explanation = ({ bucket, style }) =>
  `the bucket "${bucket}" does not exist. Check "bucket", "region", and "addressingStyle", which is "${style}"`
const noAcl: Explanation = () =>
  'the bucket does not allow ACLs. Remove "acl" and use a bucket policy instead'
const noPermission: Explanation = ({ bucket, options }, { code }, { permission }) => {
  const acl = options.acl && permission.startsWith('s3:PutObject') ? ' and s3:PutObjectAcl' : ''
  // A response to HEAD has no body that would tell invalid credentials from missing permissions.
  const reason = code === '' ? 'access denied, or invalid credentials' : 'access denied'
  return `${reason}. Allow ${permission}${acl} on the bucket "${bucket}"${code === '' ? ', or check "accessKeyId"' : ''}`
}
const noSpace: Explanation = () => 'no space left, or the quota is exceeded'
const noStorageClass: Explanation = () => 'unknown storage class. Check "storageClass"'
const noKms: Explanation = () => 'the KMS key can\'t be used. Check "sseKmsKeyId" and its permissions'
const notS3: Explanation = (_, { headers }) =>
  `the endpoint redirects to ${excerpt(headers.location ?? '')}. Set "endpoint" to the final URL of the S3 API`
const refusedOption: Explanation = ({ options }) => {
  const optional = ['acl', 'storageClass', 'serverSideEncryption', 'sseKmsKeyId'] as const
  const given = optional.filter(name => Boolean(options[name])).map(name => `"${name}"`)
  return given.length > 0
    ? `the service may not support ${given.join(' or ')}. If so, remove that option`
    : ''
}

/** Error codes of Amazon, and codes of Alibaba, Tencent, Volcengine and MinIO that differ. */
const BY_CODE: Readonly<Record<string, Explanation>> = {
  RequestTimeTooSkewed: wrongClock,
  RequestIsExpired: wrongClock,
  AuthorizationHeaderMalformed: wrongRegion,
  IllegalLocationConstraintException: wrongRegion,
  PermanentRedirect: wrongRegion,
  TemporaryRedirect: wrongRegion,
  InvalidRegion: wrongRegion,
  SecondLevelDomainForbidden: wrongStyle,
  PathStyleDomainForbidden: wrongStyle,
  InvalidPathAccess: wrongStyle,
  InvalidAccessKeyId: unknownKey,
  SignatureDoesNotMatch: wrongSecret,
  ExpiredToken: expiredToken,
  InvalidToken: expiredToken,
  NoSuchBucket: noBucket,
  InvalidBucketName: noBucket,
  AccessControlListNotSupported: noAcl,
  QuotaExceeded: noSpace,
  XMinioStorageFull: noSpace,
  InvalidStorageClass: noStorageClass,
}

/** Makes an error that tells what failed, at which bucket, why, and what to do. */
export function explainS3(
  error: unknown,
  label: string,
  settings: S3Settings,
  action: S3Action,
): UploadError {
  const retryAfterS = retryAfterOf(error)
  const reason = reasonOf(error, settings, action)
  return new UploadError('destination_failed', `${action.what} at ${label}: ${reason}.`, {
    cause: causeOf(error),
    retryable: isTransient(error),
    ...(retryAfterS !== undefined && { retryAfterS }),
  })
}

function reasonOf(error: unknown, settings: S3Settings, action: S3Action): string {
  if (error instanceof UploadError) return error.message.replace(/\.$/, '')
  if (!(error instanceof Refusal)) return explainNoAnswer(error, settings)
  const { facts } = error
  const { status, code, message } = facts
  const hint = chooseExplanation(facts, settings.region)?.(settings, facts, action)
  const answer = [new URL(settings.endpoint).host, 'returned', status, code].filter(Boolean).join(' ')
  const words = message && `: ${excerpt(message).replace(/\.$/, '')}`
  return hint ? `${hint} (${answer}${words})` : `${answer}${words}`
}

/** Returns a short cause for the log: the status, code and message, without the whole response. */
function causeOf(error: unknown): unknown {
  if (!(error instanceof Refusal)) return error
  const { status, code, message, requestId } = error.facts
  return new Error([status, code, message, requestId && `(request ${requestId})`].filter(Boolean).join(' '))
}

function chooseExplanation(facts: RefusalFacts, region: string): Explanation | undefined {
  const { status, code, endpoint, skewS = 0, headers } = facts
  const bucketRegion = headers['x-amz-bucket-region'] ?? region
  if (Object.hasOwn(BY_CODE, code)) return BY_CODE[code]
  if (code.startsWith('KMS.')) return noKms
  // Alibaba returns the correct endpoint in an AccessDenied error.
  if (endpoint !== undefined || bucketRegion !== region) return wrongRegion
  if (status >= 300 && status < 400) return headers.location ? notS3 : wrongRegion
  if ([400, 401, 403].includes(status) && Math.abs(skewS) > SKEW_S) return wrongClock
  if (status === 401 || status === 403) return noPermission
  return status === 400 || status === 501 ? refusedOption : undefined
}

function describeSkew({ skewS }: RefusalFacts): string {
  if (skewS === undefined) return 'it differs too much from the clock of the service'
  return `it is ${Math.round(Math.abs(skewS) / 60)} minutes ${skewS > 0 ? 'slow' : 'fast'}`
}

/** Returns the end of a sentence about a service that did not respond. */
function explainNoAnswer(error: unknown, { bucketUrl, endpoint }: S3Settings): string {
  const name = new URL(bucketUrl).host
  const orPath = name !== new URL(endpoint).host ? ', or set "addressingStyle" to "path"' : ''
  const code = networkCodeOf(error)
  if (code === 'ENOTFOUND')
    return `the hostname ${name} does not exist. Check "endpoint" and "region"${orPath}`
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return `the certificate of ${name} is for another hostname. Check "endpoint"${orPath}`
  }
  if (isUntrusted(code)) {
    return `the certificate of ${name} is not trusted (${code}). Add its CA certificate with "caFile"`
  }
  if (isNoTls(code)) {
    return `${name} does not use TLS. If that is intended, write "endpoint" with http instead of https`
  }
  if (code === 'ERR_INVALID_CHAR') {
    return 'an option contains a character that is not allowed in a header. Check the ends of "accessKeyId" and "sessionToken"'
  }
  if (code === 'ECONNREFUSED') return `${name} refuses connections`
  if (code === 'ETIMEDOUT') return `${name} did not respond in time`
  return `${name} closed the connection (${code || excerpt(messageOf(error))})`
}
