import type { HttpReply } from '../../http/client.ts'
import { excerpt } from '../../http/excerpt.ts'
import { isTransientStatus, networkCodeOf, parseRetryAfter } from '../../http/network.ts'
import { ProxyFailure } from '../../http/proxy/failure.ts'
import { Problem } from '../../problem.ts'
import { readElement } from '../shared/xml-path.ts'
import type { S3Settings } from './settings.ts'

/** An error response, and what explains it. */
interface Facts {
  readonly status: number
  /** Code in the error document, such as `NoSuchBucket`. Empty if the response has no code. */
  readonly code: string
  readonly headers: HttpReply['headers']
  /** Region of the bucket. */
  readonly region: string | undefined
  /** Hostname to use instead. */
  readonly endpoint: string | undefined
  /** Seconds by which the service's clock is ahead of this one. Undefined if the response has no time. */
  readonly skewS: number | undefined
  readonly settings: S3Settings
  /** What the policy of the bucket must allow for the request. */
  readonly permission: string
}

/** The reason without the point, and the advice without its point, because the response follows it. */
type Explanation = (facts: Facts) => readonly [why?: string, advice?: string]

/** Codes of transient failures. After NoSuchUpload, the multipart upload was aborted by another program, or is already complete. */
const TRANSIENT_CODE =
  /^(?:InternalError|RequestTimeout|ServiceUnavailable|SlowDown|OperationAborted|NoSuchUpload)$/
/** MinIO's code for a full disk. Its status 507 is transient at other services. */
const FULL_CODE = 'XMinioStorageFull'

/** A response with an error status. */
export class Refusal extends Problem {
  readonly status: number
  /** Code in the error document. Empty if the response has no code. */
  readonly s3Code: string
  readonly headers: HttpReply['headers']

  /** @param permission what the policy of the bucket must allow for the request */
  constructor({ status, headers, text }: HttpReply, settings: S3Settings, permission: string) {
    const read = (name: string) => readElement(text, name)
    // They are names, and messages quote them.
    const [code = '', region, endpoint] = ['Code', 'Region', 'Endpoint'].map(name => quote(read(name)))
    const time = Date.parse(read('ServerTime') ?? headers['date'] ?? '')
    const skewS = Number.isNaN(time) ? undefined : Math.round((time - Date.now()) / 1000)
    const facts = { status, code, headers, region, endpoint, skewS, settings, permission }
    const explain = RULES.find(([rule]) => (rule instanceof RegExp ? rule.test(code) : rule(facts)))?.[1]
    const [why, advice] = explain?.(facts) ?? []

    const message = read('Message')
    const answer = [new URL(settings.endpoint).host, 'returned', status, code].filter(Boolean).join(' ')
    const said = message ? `${answer}: ${excerpt(message).replace(/\.$/, '')}` : answer
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

const wrongClock: Explanation = ({ skewS }) => {
  const how =
    skewS === undefined
      ? 'it differs too much from the clock of the service'
      : `it is ${Math.round(Math.abs(skewS) / 60)} minutes ${skewS > 0 ? 'slow' : 'fast'}`
  return [`the clock of this machine is wrong: ${how}`, 'Set it, for example with NTP']
}

const wrongRegion: Explanation = ({ settings, region, endpoint, headers }) => {
  const found = region ?? quote(headers['x-amz-bucket-region'])
  const right = found ? `the bucket is in "${found}"` : 'the bucket is in another region'
  const host = endpoint ? `, at "${endpoint}"` : ''
  return [
    `the region is wrong: requests are signed for "${settings.region}", but ${right}${host}`,
    'Set "region" and "endpoint" to those of the bucket',
  ]
}

const noPermission: Explanation = ({ code, permission, settings: { bucket, options } }) => {
  const acl = options.acl && permission.startsWith('s3:PutObject') ? ' and s3:PutObjectAcl' : ''
  const allow = `Allow ${permission}${acl} on the bucket "${bucket}"`
  // A response to HEAD has no body that would tell invalid credentials from missing permissions.
  if (code === '') return ['access denied, or invalid credentials', `${allow}, or check "accessKeyId"`]
  return ['access denied', allow]
}

const refusedOption: Explanation = ({ settings: { options } }) => {
  const optional = ['acl', 'storageClass', 'serverSideEncryption', 'sseKmsKeyId'] as const
  const given = optional.filter(name => Boolean(options[name])).map(name => `"${name}"`)
  if (given.length === 0) return []
  return [`the service may not support ${given.join(' or ')}`, 'If so, remove that option']
}

/** Clock skew above which services may reject signatures (Amazon: 15 minutes; some services: less), in seconds. */
const MAX_SKEW_S = 4 * 60

/** What responses mean; the first rule counts. Codes are those of Amazon, and of Alibaba, Tencent, Volcengine and MinIO. */
const RULES: readonly (readonly [rule: RegExp | ((facts: Facts) => boolean), explain: Explanation])[] = [
  [/^RequestTimeTooSkewed$|^RequestIsExpired$/, wrongClock],
  [/^AuthorizationHeaderMalformed$|^IllegalLocationConstraintException$|^InvalidRegion$/, wrongRegion],
  [/^(?:Permanent|Temporary)Redirect$/, wrongRegion],
  [
    /^(?:SecondLevelDomainForbidden|PathStyleDomainForbidden|InvalidPathAccess)$/,
    () => ['the service rejects path-style requests', 'Set "addressingStyle" to "virtual"'],
  ],
  [/^InvalidAccessKeyId$/, () => ['unknown access key ID', 'Check "accessKeyId"']],
  [
    /^SignatureDoesNotMatch$/,
    ({ settings: { region } }) => [
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
    ({ settings: { bucket, style } }) => [
      `the bucket "${bucket}" does not exist`,
      `Check "bucket", "region", and "addressingStyle", which is "${style}"`,
    ],
  ],
  [
    /^AccessControlListNotSupported$/,
    () => ['the bucket does not allow ACLs', 'Remove "acl" and use a bucket policy instead'],
  ],
  [
    ({ code }) => code === 'QuotaExceeded' || code === FULL_CODE,
    () => ['no space left, or the quota is exceeded', 'Free some space there, or raise the quota'],
  ],
  [/^InvalidStorageClass$/, () => ['unknown storage class', 'Check "storageClass"']],
  [/^KMS\./, () => ["the KMS key can't be used", 'Check "sseKmsKeyId" and its permissions']],
  // Alibaba returns the correct endpoint in an AccessDenied error.
  [({ endpoint }) => endpoint !== undefined, wrongRegion],
  [({ headers, settings: { region } }) => (headers['x-amz-bucket-region'] ?? region) !== region, wrongRegion],
  [
    ({ status, headers }) => isRedirect(status) && Boolean(headers['location']),
    ({ headers }) => [
      `the endpoint redirects to ${excerpt(headers['location'] ?? '')}`,
      'Set "endpoint" to the final URL of the S3 API',
    ],
  ],
  [({ status }) => isRedirect(status), wrongRegion],
  [({ status, skewS = 0 }) => [400, 401, 403].includes(status) && Math.abs(skewS) > MAX_SKEW_S, wrongClock],
  [({ status }) => status === 401 || status === 403, noPermission],
  [({ status }) => status === 400 || status === 501, refusedOption],
]

const isRedirect = (status: number) => status >= 300 && status < 400

/** Explains a failed connection. A wrong option is often the reason, because the hostname is made of several. */
export function explainReach(error: unknown, { bucketUrl, endpoint }: S3Settings): unknown {
  if (!(error instanceof Problem) || error instanceof ProxyFailure) return error
  const name = new URL(bucketUrl).host
  const orPath = name !== new URL(endpoint).host ? ', or set "addressingStyle" to "path"' : ''
  const fail = (why: string, advice: string) => new Problem(why, { advice, cause: error.cause })
  switch (networkCodeOf(error.cause)) {
    case 'ENOTFOUND':
      return fail(`the hostname ${name} does not exist`, `Check "endpoint" and "region"${orPath}.`)
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return fail(`the certificate of ${name} is for another hostname`, `Check "endpoint"${orPath}.`)
    case 'ERR_INVALID_CHAR':
      return fail(
        'an option contains a character that is not allowed in a header',
        'Check the ends of "accessKeyId" and "sessionToken".',
      )
    default:
      return error
  }
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
