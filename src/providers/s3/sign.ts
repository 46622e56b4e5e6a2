import { createHmac, hash } from 'node:crypto'
import { encodeSegment } from '../shared/public-url.ts'

const ALGORITHM = 'AWS4-HMAC-SHA256'

export interface S3Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string | undefined
  /** Time at which the credentials expire. Undefined if they do not expire, or if the time is unknown. */
  readonly expiration?: Date | undefined
}

interface RequestToSign {
  readonly method: string
  /** Path, encoded as it is sent. */
  readonly path: string
  /** Query in the format of `formatQuery`. */
  readonly query: string
  /** Headers with lower-case names, including `host`. */
  readonly headers: Readonly<Record<string, string>>
  /** SHA-256 of the body, hex. */
  readonly sha256: string
}

/**
 * Signs a request with AWS Signature Version 4, as in "Authenticating Requests (AWS Signature Version 4)" of the Amazon S3 API
 * reference. Returns all headers, including those of the signature.
 */
export function signRequest(
  request: RequestToSign,
  region: string,
  credentials: S3Credentials,
  now: Date,
): Record<string, string> {
  const { time, credential, sign } = createSigner(region, credentials, now)
  const { sessionToken } = credentials
  // Proxies may change this header. Services do not require its signature.
  const { 'cache-control': cacheControl, ...given } = request.headers
  const headers = {
    ...given,
    'x-amz-content-sha256': request.sha256,
    'x-amz-date': time,
    ...(sessionToken && { 'x-amz-security-token': sessionToken }),
  }
  const names = Object.keys(headers).sort().join(';')
  const signature = sign({ ...request, headers })
  return {
    ...headers,
    ...(cacheControl && { 'cache-control': cacheControl }),
    authorization: `${ALGORITHM} Credential=${credential}, SignedHeaders=${names}, Signature=${signature}`,
  }
}

/**
 * Returns a query that allows one request to one object without credentials.
 *
 * @param expiresS seconds, from 1 to 604800
 */
export function signUrl(
  { method, path, host, expiresS }: { method: string; path: string; host: string; expiresS: number },
  region: string,
  credentials: S3Credentials,
  now: Date,
): string {
  const { time, credential, sign } = createSigner(region, credentials, now)
  const { sessionToken } = credentials
  const query = formatQuery({
    'X-Amz-Algorithm': ALGORITHM,
    'X-Amz-Credential': credential,
    'X-Amz-Date': time,
    'X-Amz-Expires': String(expiresS),
    ...(sessionToken && { 'X-Amz-Security-Token': sessionToken }),
    'X-Amz-SignedHeaders': 'host',
  })
  return `${query}&X-Amz-Signature=${sign({ method, path, query, headers: { host }, sha256: 'UNSIGNED-PAYLOAD' })}`
}

function createSigner(region: string, { accessKeyId, secretAccessKey }: S3Credentials, now: Date) {
  const hmac = (key: Buffer | string, text: string) => createHmac('sha256', key).update(text).digest()
  // Such as 20260131T235959Z.
  const time = now.toISOString().replace(/[-:]|\.\d+/g, '')
  const scope = [time.slice(0, 8), region, 's3', 'aws4_request']
  return {
    time,
    credential: [accessKeyId, ...scope].join('/'),
    sign({ method, path, query, headers, sha256 }: RequestToSign): string {
      const names = Object.keys(headers).sort()
      const lines = names.map(name => `${name}:${headers[name]?.trim().replace(/ +/g, ' ')}\n`).join('')
      const canonical = `${method}\n${path}\n${query}\n${lines}\n${names.join(';')}\n${sha256}`
      const key = scope.reduce<Buffer | string>(hmac, `AWS4${secretAccessKey}`)
      const text = `${ALGORITHM}\n${time}\n${scope.join('/')}\n${hash('sha256', canonical)}`
      return hmac(key, text).toString('hex')
    },
  }
}

/** Formats a query in the order and the encoding in which it is signed. Empty without parameters. */
export function formatQuery(parameters: Readonly<Record<string, string>>): string {
  return Object.entries(parameters)
    .map(([name, value]) => [encodeSegment(name), encodeSegment(value)] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`)
    .join('&')
}
