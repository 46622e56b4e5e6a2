import { excerpt } from '../../http/excerpt.ts'
import { connectionProblem, networkCodeOf } from '../../http/network.ts'
import { Problem } from '../../problem.ts'
import { isTransient, Refusal, type RefusalFacts, retryAfterOf } from './refusal.ts'
import type { S3Settings } from './settings.ts'

/** Clock skew above which services may reject signatures (Amazon: 15 minutes; some services: less), in seconds. */
const SKEW_S = 4 * 60

/** The reason without the point, and the advice without its point, because the response follows it. */
type Explained = readonly [why: string, advice?: string]

/** @param permission that the operation needs */
type Explanation = (settings: S3Settings, facts: RefusalFacts, permission: string) => Explained

const wrongRegion: Explanation = ({ region }, facts) => {
  const named = facts.headers['x-amz-bucket-region']?.toString()
  const found = facts.region ?? (named && excerpt(named))
  const right = found ? `the bucket is in "${found}"` : 'the bucket is in another region'
  const host = facts.endpoint ? `, at "${facts.endpoint}"` : ''
  return [
    `the region is wrong: requests are signed for "${region}", but ${right}${host}`,
    'Set "region" and "endpoint" to those of the bucket',
  ]
}
const wrongStyle: Explanation = () => [
  'the service rejects path-style requests',
  'Set "addressingStyle" to "virtual"',
]
const wrongClock: Explanation = (_, facts) => [
  `the clock of this machine is wrong: ${describeSkew(facts)}`,
  'Set it, for example with NTP',
]
const unknownKey: Explanation = () => ['unknown access key ID', 'Check "accessKeyId"']
const wrongSecret: Explanation = ({ region }) => [
  'the signature does not match',
  `Check "secretAccessKey", and "region", which is "${region}"`,
]
const expiredToken: Explanation = () => [
  'the session token is invalid or expired',
  'Get new temporary credentials',
]
const noBucket: Explanation = ({ bucket, style }) => [
  `the bucket "${bucket}" does not exist`,
  `Check "bucket", "region", and "addressingStyle", which is "${style}"`,
]
const noAcl: Explanation = () => [
  'the bucket does not allow ACLs',
  'Remove "acl" and use a bucket policy instead',
]
const noPermission: Explanation = ({ bucket, options }, { code }, permission) => {
  const acl = options.acl && permission.startsWith('s3:PutObject') ? ' and s3:PutObjectAcl' : ''
  // A response to HEAD has no body that would tell invalid credentials from missing permissions.
  const reason = code === '' ? 'access denied, or invalid credentials' : 'access denied'
  return [
    reason,
    `Allow ${permission}${acl} on the bucket "${bucket}"${code === '' ? ', or check "accessKeyId"' : ''}`,
  ]
}
const noSpace: Explanation = () => [
  'no space left, or the quota is exceeded',
  'Free some space there, or raise the quota',
]
const noStorageClass: Explanation = () => ['unknown storage class', 'Check "storageClass"']
const noKms: Explanation = () => ["the KMS key can't be used", 'Check "sseKmsKeyId" and its permissions']
const notS3: Explanation = (_, { headers }) => [
  `the endpoint redirects to ${excerpt(headers.location ?? '')}`,
  'Set "endpoint" to the final URL of the S3 API',
]
const refusedOption: Explanation = ({ options }) => {
  const optional = ['acl', 'storageClass', 'serverSideEncryption', 'sseKmsKeyId'] as const
  const given = optional.filter(name => Boolean(options[name])).map(name => `"${name}"`)
  return given.length > 0
    ? [`the service may not support ${given.join(' or ')}`, 'If so, remove that option']
    : ['']
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

/**
 * Explains what a request to the bucket throws.
 *
 * @param permission that the operation needs
 */
export function explainS3(error: unknown, settings: S3Settings, permission: string): Problem {
  if (error instanceof Problem) return error
  if (!(error instanceof Refusal)) return explainNoAnswer(error, settings)
  const { facts } = error
  const { status, code, message } = facts
  const [why, advice] = chooseExplanation(facts, settings.region)?.(settings, facts, permission) ?? []
  const answer = [new URL(settings.endpoint).host, 'returned', status, code].filter(Boolean).join(' ')
  const words = message && `: ${excerpt(message).replace(/\.$/, '')}`
  const retryAfterS = retryAfterOf(error)
  return new Problem(why || `${answer}${words}`, {
    ...(advice && { advice: `${advice} (${answer}${words}).` }),
    cause: causeOf(error),
    retryable: isTransient(error),
    ...(retryAfterS !== undefined && { retryAfterS }),
  })
}

/** Returns a short cause for the log: the status, code and message, without the whole response. */
function causeOf({ facts: { status, code, message, requestId } }: Refusal): Error {
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

/** Explains a failed connection. A wrong option is often the reason, because the hostname is made of several. */
function explainNoAnswer(error: unknown, { bucketUrl, endpoint }: S3Settings): Problem {
  const name = new URL(bucketUrl).host
  const orPath = name !== new URL(endpoint).host ? ', or set "addressingStyle" to "path"' : ''
  const code = networkCodeOf(error)
  if (code === 'ENOTFOUND')
    return new Problem(`the hostname ${name} does not exist`, {
      advice: `Check "endpoint" and "region"${orPath}.`,
      cause: error,
    })
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return new Problem(`the certificate of ${name} is for another hostname`, {
      advice: `Check "endpoint"${orPath}.`,
      cause: error,
    })
  if (code === 'ERR_INVALID_CHAR')
    return new Problem('an option contains a character that is not allowed in a header', {
      advice: 'Check the ends of "accessKeyId" and "sessionToken".',
      cause: error,
    })
  return connectionProblem(error, `${name} can't be reached`)
}
