import { createHmac, hash } from 'node:crypto'
import { encodeSegment } from '../shared/public-url.ts'

const ALGORITHM = 'AWS4-HMAC-SHA256'
const UNSIGNED = 'UNSIGNED-PAYLOAD'
/** This header is not signed, because proxies may change it. Services do not require its signature. */
const UNSIGNED_HEADER = 'cache-control'

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

/** Signs requests to one bucket. */
export interface Signer {
  /** Returns all headers, including those of the signature. */
  sign(request: RequestToSign, credentials: S3Credentials, now: Date): Record<string, string>
  /**
   * Returns a query that allows one request to one object without credentials.
   *
   * @param expiresS seconds, from 1 to 604800
   */
  presign(
    request: Pick<RequestToSign, 'method' | 'path'> & { readonly host: string; readonly expiresS: number },
    credentials: S3Credentials,
    now: Date,
  ): string
}

/**
 * Creates signatures of AWS Signature Version 4, as in "Authenticating Requests (AWS Signature Version 4)" of the Amazon S3
 * API reference: in the header `Authorization`, or in the query of a URL.
 */
export function createSigner(region: string): Signer {
  /** Signing key of the last request. It is valid for one day. */
  let last: { day: string; secret: string; key: Buffer } | undefined

  function keyOf(day: string, secret: string): Buffer {
    if (last?.day !== day || last.secret !== secret) {
      const key = [region, 's3', 'aws4_request'].reduce(hmac, hmac(`AWS4${secret}`, day))
      last = { day, secret, key }
    }
    return last.key
  }

  function signatureOf(canonical: string, scope: string, time: string, secret: string): string {
    const text = `${ALGORITHM}\n${time}\n${scope}\n${hash('sha256', canonical)}`
    return createHmac('sha256', keyOf(time.slice(0, 8), secret))
      .update(text)
      .digest('hex')
  }

  const scopeOf = (time: string): string => `${time.slice(0, 8)}/${region}/s3/aws4_request`

  return {
    sign({ method, path, query, headers, sha256 }, { accessKeyId, secretAccessKey, sessionToken }, now) {
      const time = formatTime(now)
      const all: Record<string, string> = { ...headers, 'x-amz-content-sha256': sha256, 'x-amz-date': time }
      if (sessionToken) all['x-amz-security-token'] = sessionToken
      const names = Object.keys(all)
        .filter(name => name !== UNSIGNED_HEADER)
        .sort()
      const lines = names.map(name => `${name}:${trim(all[name] ?? '')}\n`).join('')
      const signed = names.join(';')
      const scope = scopeOf(time)
      const canonical = `${method}\n${path}\n${query}\n${lines}\n${signed}\n${sha256}`
      const signature = signatureOf(canonical, scope, time, secretAccessKey)
      all['authorization'] =
        `${ALGORITHM} Credential=${accessKeyId}/${scope}, SignedHeaders=${signed}, Signature=${signature}`
      return all
    },

    presign({ method, path, host, expiresS }, { accessKeyId, secretAccessKey, sessionToken }, now) {
      const time = formatTime(now)
      const scope = scopeOf(time)
      const query = formatQuery({
        'X-Amz-Algorithm': ALGORITHM,
        'X-Amz-Credential': `${accessKeyId}/${scope}`,
        'X-Amz-Date': time,
        'X-Amz-Expires': String(expiresS),
        ...(sessionToken && { 'X-Amz-Security-Token': sessionToken }),
        'X-Amz-SignedHeaders': 'host',
      })
      const canonical = `${method}\n${path}\n${query}\nhost:${host}\n\nhost\n${UNSIGNED}`
      return `${query}&X-Amz-Signature=${signatureOf(canonical, scope, time, secretAccessKey)}`
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

/** Formats a time as `20260131T235959Z`. */
function formatTime(time: Date): string {
  return time.toISOString().replace(/[-:]|\.\d+/g, '')
}

/** Trims a header value and merges repeated spaces, as the signature requires. */
function trim(value: string): string {
  const trimmed = value.trim()
  return trimmed.includes('  ') ? trimmed.replace(/ +/g, ' ') : trimmed
}

function hmac(key: Buffer | string, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
