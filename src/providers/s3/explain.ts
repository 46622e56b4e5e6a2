import { messageOf, UploadError } from '../../errors.ts'
import { excerpt } from '../../http/client.ts'
import { isNoTls, isUntrusted, networkCodeOf } from '../../http/network.ts'
import { type Facts, mayPass, Refusal, retryAfterOf } from './refusal.ts'
import type { S3Settings } from './settings.ts'

/** Further from the server's clock than this, signatures are refused (Amazon: 15 minutes; some take less). */
const SKEW_S = 4 * 60

/** What was tried, as a part of a sentence, and the permission it needs. */
export interface Attempt {
  /** Such as `could not store "a.png"`. */
  readonly what: string
  readonly permission: string
}

type Explain = (settings: S3Settings, facts: Facts, attempt: Attempt) => string

const wrongRegion: Explain = ({ region }, facts) => {
  const found = facts.region ?? facts.headers['x-amz-bucket-region']
  const right = found ? `the bucket is in "${found}"` : 'the bucket is in another one'
  const host = facts.endpoint ? ` and reached at "${facts.endpoint}"` : ''
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
const notS3: Explain = (_, { headers }) =>
  `it sends us to ${excerpt(headers.location ?? '')}. Set "endpoint" to the final address of the S3 API`
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
}

/** Says of a failure what happened, at which bucket, and what to do about it. */
export function explainS3(
  error: unknown,
  label: string,
  settings: S3Settings,
  attempt: Attempt,
): UploadError {
  const retryAfterS = retryAfterOf(error)
  const reason = reasonOf(error, settings, attempt)
  return new UploadError('delivery_failed', `${label} ${attempt.what}: ${reason}.`, {
    cause: causeOf(error),
    retryable: mayPass(error),
    ...(retryAfterS !== undefined && { retryAfterS }),
  })
}

function reasonOf(error: unknown, settings: S3Settings, attempt: Attempt): string {
  if (error instanceof UploadError) return error.message.replace(/\.$/, '')
  if (!(error instanceof Refusal)) return explainNoAnswer(error, settings)
  const { facts } = error
  const { status, code, message } = facts
  const hint = chooseExplanation(facts, settings.region)?.(settings, facts, attempt)
  const answer = [new URL(settings.endpoint).host, 'answered', status, code].filter(Boolean).join(' ')
  const words = message && `: ${excerpt(message).replace(/\.$/, '')}`
  return hint ? `${hint} (${answer}${words})` : `${answer}${words}`
}

/** For the log: the words of the service instead of everything that hangs on its answer. */
function causeOf(error: unknown): unknown {
  if (!(error instanceof Refusal)) return error
  const { status, code, message, requestId } = error.facts
  return new Error([status, code, message, requestId && `(request ${requestId})`].filter(Boolean).join(' '))
}

function chooseExplanation(facts: Facts, region: string): Explain | undefined {
  const { status, code, endpoint, skewS = 0, headers } = facts
  const bucketRegion = headers['x-amz-bucket-region'] ?? region
  if (Object.hasOwn(BY_CODE, code)) return BY_CODE[code]
  if (code.startsWith('KMS.')) return noKms
  // Alibaba names the right endpoint in an AccessDenied.
  if (endpoint !== undefined || bucketRegion !== region) return wrongRegion
  if (status >= 300 && status < 400) return headers.location ? notS3 : wrongRegion
  if ([400, 401, 403].includes(status) && Math.abs(skewS) > SKEW_S) return wrongClock
  if (status === 401 || status === 403) return noPermission
  return status === 400 || status === 501 ? refusedOption : undefined
}

function describeSkew({ skewS }: Facts): string {
  if (skewS === undefined) return 'it differs too much from the one of the service'
  return `it is ${Math.round(Math.abs(skewS) / 60)} minutes ${skewS > 0 ? 'behind' : 'ahead'}`
}

/** The end of a sentence about a service that gave no answer. */
function explainNoAnswer(error: unknown, { bucketUrl, endpoint }: S3Settings): string {
  const name = new URL(bucketUrl).host
  const orPath = name !== new URL(endpoint).host ? ', or set "addressingStyle" to "path"' : ''
  const code = networkCodeOf(error)
  if (code === 'ENOTFOUND') return `the name ${name} is unknown. Check "endpoint" and "region"${orPath}`
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return `the certificate of ${name} is for another name. Check "endpoint"${orPath}`
  }
  if (isUntrusted(code)) {
    return `the certificate of ${name} is not trusted (${code}). Name its authority with "caFile"`
  }
  if (isNoTls(code)) {
    return `${name} does not speak TLS. Write http in front of "endpoint" if that is meant`
  }
  if (code === 'ERR_INVALID_CHAR') {
    return 'an option holds a character that no header may hold. Check the ends of "accessKeyId" and "sessionToken"'
  }
  if (code === 'ECONNREFUSED') return `nobody listens at ${name}`
  if (code === 'ETIMEDOUT') return `${name} did not answer in time`
  return `${name} broke off (${code || excerpt(messageOf(error))})`
}
