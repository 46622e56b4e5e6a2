import { hash, randomUUID } from 'node:crypto'
import { type Body, hashOf, inMemory } from '../../body.ts'
import { type HttpClient, HttpRefusal, type HttpReply } from '../../http/client.ts'
import type { SignedUrl } from '../contract.ts'
import { encodeKey } from '../shared/public-url.ts'
import { codeOf, explainRefusal, isFromService, notS3 } from './refusal.ts'
import type { S3Settings } from './settings.ts'
import { formatQuery, type S3Credentials, signRequest, signUrl } from './sign.ts'

/** Names are in lower case. */
export type Headers = Readonly<Record<string, string>>

export interface S3Request {
  readonly method: 'PUT' | 'POST' | 'HEAD' | 'DELETE'
  /** Object key, including the folder of the destination. */
  readonly key: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Headers
  /** Required for `PUT` and `POST`. */
  readonly body?: S3Body
}

/** A body and its SHA-256, hex. The service compares it with the bytes that it receives. */
export type S3Body = Body & { readonly sha256: string }

/** Makes a request body of bytes in memory. */
export function bodyOf(bytes: Buffer): S3Body {
  return { ...inMemory(bytes), sha256: hash('sha256', bytes) }
}

/** Where the bucket is, and how requests to it are signed. Its URL has no slash at the end. */
export interface S3Access extends Pick<S3Settings, 'bucketUrl'> {
  readonly credentials: S3Credentials
}

export type S3Client = ReturnType<typeof createS3Client>

/**
 * Requests to the objects of one bucket.
 *
 * @param getAccess is called for each request, because temporary credentials expire
 */
export function createS3Client(
  settings: S3Settings,
  http: HttpClient,
  getAccess: (signal?: AbortSignal) => Promise<S3Access>,
) {
  const { region, style } = settings
  // A wrong option is often the reason for a failed connection, because the hostname is made of several.
  const orPath = style === 'virtual' ? ', or set "addressingStyle" to "path"' : ''
  const advice = {
    ENOTFOUND: `Check "endpoint" and "region"${orPath}.`,
    ERR_TLS_CERT_ALTNAME_INVALID: `Check "endpoint"${orPath}.`,
    ERR_INVALID_CHAR: 'Check the ends of "accessKeyId" and "sessionToken".',
  }

  async function locate(key: string, signal?: AbortSignal) {
    const { bucketUrl, credentials } = await getAccess(signal)
    const { origin, host, pathname } = new URL(bucketUrl)
    return { origin, host, path: `${pathname.replace(/\/$/, '')}/${encodeKey(key)}`, credentials }
  }

  /** Sends a request once. @throws HttpRefusal if the service reports a failure, or another Problem */
  async function send(
    { method, key, query = {}, headers, body }: S3Request,
    signal: AbortSignal,
  ): Promise<HttpReply> {
    const { origin, host, path, credentials } = await locate(key, signal)
    const search = formatQuery(query)
    const length = body && { 'content-length': String(body.size) }
    const sha256 = body?.sha256 ?? hash('sha256', '')
    const toSign = { method, path, query: search, headers: { ...headers, host, ...length }, sha256 }
    return http.send(
      {
        method,
        url: `${origin}${path}${search && `?${search}`}`,
        headers: signRequest(toSign, region, credentials, new Date()),
        body,
        advice,
        accept: (status, reply) =>
          // The end of a multipart upload has its status before the work is done: a failure shows in the document only.
          method === 'POST' && status === 200 ? codeOf(reply) === undefined : status >= 200 && status < 300,
        explain: reply => explainRefusal(reply, settings, permissionFor(method, query)),
      },
      signal,
    )
  }

  /** The same, but accepts the response about a missing object. */
  const sendIfThere = (method: 'HEAD' | 'DELETE', key: string, signal: AbortSignal) =>
    send({ method, key }, signal).catch((error: unknown) => {
      const isMissing =
        error instanceof HttpRefusal &&
        (method === 'HEAD' ? error.reply.status === 404 : codeOf(error.reply) === 'NoSuchKey')
      if (isMissing) return error.reply
      throw error
    })

  /** @throws Problem if the server returns a success for every key, so it is not an S3 service */
  async function exists(key: string, signal: AbortSignal): Promise<boolean> {
    const found = await sendIfThere('HEAD', key, signal)
    if (found.status === 404) return false
    if (isFromService(found)) return true
    // Some services send no request ID. They send none for a missing key either, and must return 404 for it.
    const other = await sendIfThere('HEAD', `${key}-${randomUUID()}`, signal)
    if (other.status !== 404 || isFromService(other)) throw notS3()
    return true
  }

  return {
    send,
    exists,

    /**
     * Sends an object in one request. The length and the hash are known before the first byte.
     *
     * A response is from an S3 service if it has a request ID, or is empty and has an ETag. An ETag that looks like an MD5
     * must be that of the object. Encrypted objects and some services have other ETags.
     */
    async put(key: string, headers: Headers, body: S3Body, signal: AbortSignal): Promise<void> {
      const reply = await send({ method: 'PUT', key, headers, body }, signal)
      if (isFromService(reply)) return
      const etag = reply.headers['etag']?.replaceAll('"', '').toLowerCase()
      if (etag === undefined || reply.text.trim() !== '') throw notS3()
      if (/^[\da-f]{32}$/.test(etag) && etag !== (await hashOf(body, 'md5', signal))) throw notS3()
    },

    /** Removes an object. A missing object counts as removed. */
    async remove(key: string, signal: AbortSignal): Promise<void> {
      const reply = await sendIfThere('DELETE', key, signal)
      if (!isFromService(reply) && (await exists(key, signal))) throw notS3()
    },

    /** Creates a URL that opens one object for `expiresS` seconds, or until the credentials expire. */
    async presign(key: string, expiresS: number, method: 'GET' | 'HEAD' = 'GET'): Promise<SignedUrl> {
      const { origin, host, path, credentials } = await locate(key)
      const { expiration } = credentials
      const leftS = expiration ? Math.floor((expiration.getTime() - Date.now()) / 1000) : expiresS
      const query = signUrl({ method, path, host, expiresS }, region, credentials, new Date())
      return { url: `${origin}${path}?${query}`, forS: Math.min(expiresS, leftS) }
    },
  }
}

/** What the policy of the bucket must allow for a request. */
function permissionFor(method: S3Request['method'], query: object): string {
  if (method === 'HEAD') return 's3:GetObject and s3:ListBucket'
  if (method === 'DELETE') return 'uploadId' in query ? 's3:AbortMultipartUpload' : 's3:DeleteObject'
  return method === 'POST' ? 's3:PutObject and s3:AbortMultipartUpload' : 's3:PutObject'
}
