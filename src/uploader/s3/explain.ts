import { UploadError } from '../../errors.ts'
import { excerpt, parseRetryAfter } from '../http.ts'
import { isPassing as isPassingCode, networkCodeOf } from '../network.ts'
import { type Facts, readFacts, skewOf, slimDown } from './facts.ts'
import { explainNetwork } from './network.ts'
import type { S3Settings } from './settings.ts'

/** Further from the server's clock than this, signatures are refused (Amazon: 15 minutes; some take less). */
const SKEW_S = 4 * 60

/** What was tried, as a part of a sentence, and the permission it needs. */
export interface Attempt {
  /** Such as `could not store "a.png"`. */
  readonly what: string
  readonly permission: string
}

/** Failures that pass. An upload in parts that is gone was taken back by somebody, or is complete already. */
const PASSING_CODES = new Set([
  'RequestTimeout',
  'SlowDown',
  'OperationAborted',
  'NoSuchUpload',
  'TimeoutError',
])
const PASSING_STATUSES = new Set([408, 425, 429, 500, 502, 503, 504])

type Explain = (settings: S3Settings, facts: Facts, attempt: Attempt) => string

const wrongRegion: Explain = ({ region }, { details, headers }) => {
  const found = details['Region'] ?? headers['x-amz-bucket-region']
  const right = typeof found === 'string' ? `the bucket is in "${found}"` : 'the bucket is in another one'
  const host = typeof details['Endpoint'] === 'string' ? ` and reached at "${details['Endpoint']}"` : ''
  return `the region is wrong: requests are signed for "${region}", but ${right}${host}. Set "region"`
}
const wrongStyle: Explain = () => 'it refuses path style. Set "addressingStyle" to "virtual"'
const wrongClock: Explain = (_, facts) =>
  `the clock of this machine is wrong: ${describeSkew(facts)}. Set it, for example with NTP`
const unknownKey: Explain = () => 'it does not know the access key id. Check "accessKeyId"'
const wrongSecret: Explain = ({ region }) =>
  `the signature does not fit. Check "secretAccessKey", and "region", which is "${region}"`
const expiredToken: Explain = () => 'the session token is expired or wrong. Get new temporary credentials'
const noBucket: Explain = ({ bucket, style }) =>
  `there is no bucket "${bucket}". Check "bucket", "region", and "addressingStyle", which is "${style}"`
const noAcl: Explain = () => 'the bucket takes no ACLs. Leave out "acl" and open the bucket by a policy'
const noPermission: Explain = ({ bucket, options }, { code }, { permission }) => {
  const acl = options.acl && permission.startsWith('s3:PutObject') ? ' and s3:PutObjectAcl' : ''
  // An answer to HEAD has no document that would tell wrong keys from missing permissions.
  const keys = code === '' ? 'the keys are wrong, or they' : 'the keys'
  return `${keys} may not do it: they need the permission ${permission}${acl} for the bucket "${bucket}"`
}
const noSpace: Explain = () => 'there is no space or quota left'
const noStorageClass: Explain = () => 'it does not know the storage class. Check "storageClass"'
const noKms: Explain = () => 'it cannot use the key. Check "sseKmsKeyId" and its permissions'
const noCredentials: Explain = () =>
  'there are no credentials. Give "accessKeyId" and "secretAccessKey", or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'
const notS3: Explain = (_, { headers }) =>
  `it sends us to ${excerpt(headers['location'] ?? '')}. Set "endpoint" to the final address of the S3 API`
const refusedOption: Explain = ({ options }) => {
  const optional = ['acl', 'storageClass', 'serverSideEncryption', 'sseKmsKeyId'] as const
  const given = optional.filter(name => options[name] !== undefined).map(name => `"${name}"`)
  return given.length > 0 ? `it may not know what ${given.join(' or ')} asks for` : ''
}

/** Codes of Amazon, and of Alibaba, Tencent, Volcengine and MinIO where theirs differ. */
const BY_CODE: Readonly<Record<string, Explain>> = {
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
  CredentialsProviderError: noCredentials,
}

/** Says of an error of the SDK what happened, at which bucket, and what to do about it. */
export function explainS3(
  error: unknown,
  label: string,
  settings: S3Settings,
  attempt: Attempt,
): UploadError {
  const facts = readFacts(error)
  const retryAfterS = parseRetryAfter(facts.headers['retry-after'] ?? null)
  const isPassing =
    PASSING_CODES.has(facts.code) ||
    PASSING_STATUSES.has(facts.status ?? 0) ||
    (facts.status === undefined && isPassingCode(networkCodeOf(error)))
  const reason =
    error instanceof UploadError
      ? error.message.replace(/\.$/, '')
      : reasonOf(error, settings, facts, attempt)
  return new UploadError('delivery_failed', `${label} ${attempt.what}: ${reason}.`, {
    cause: slimDown(error),
    retryable: error instanceof UploadError ? error.retryable : isPassing,
    ...(retryAfterS !== undefined && { retryAfterS }),
  })
}

function reasonOf(error: unknown, settings: S3Settings, facts: Facts, attempt: Attempt): string {
  const { status, code, message } = facts
  const hint = chooseExplanation(facts, settings.region)?.(settings, facts, attempt) ?? ''
  if (status === undefined) return hint || explainNetwork(error, settings)
  const answer = [new URL(settings.endpoint).host, 'answered', status, code].filter(Boolean).join(' ')
  const words = message && `: ${excerpt(message).replace(/\.$/, '')}`
  return hint ? `${hint} (${answer}${words})` : `${answer}${words}`
}

function chooseExplanation(facts: Facts, region: string): Explain | undefined {
  const { status, code, details, headers } = facts
  const bucketRegion = headers['x-amz-bucket-region'] ?? region
  if (Object.hasOwn(BY_CODE, code)) return BY_CODE[code]
  if (code.startsWith('KMS.')) return noKms
  if (status === undefined) return undefined
  // Alibaba names the right endpoint in an AccessDenied.
  if (typeof details['Endpoint'] === 'string' || bucketRegion !== region) return wrongRegion
  if (status >= 300 && status < 400) return headers['location'] ? notS3 : wrongRegion
  if ([400, 401, 403].includes(status) && Math.abs(skewOf(facts) ?? 0) > SKEW_S) return wrongClock
  if (status === 401 || status === 403) return noPermission
  return status === 400 || status === 501 ? refusedOption : undefined
}

function describeSkew(facts: Facts): string {
  const skewS = skewOf(facts)
  if (skewS === undefined) return 'it differs too much from the one of the service'
  return `it is ${Math.round(Math.abs(skewS) / 60)} minutes ${skewS > 0 ? 'behind' : 'ahead'}`
}
