import { hash, randomUUID } from 'node:crypto'
import { type Body, inMemory } from '../../body.ts'
import type { HttpReply } from '../../http/client.ts'
import type { Context, SignedUrl } from '../contract.ts'
import { encodeKey } from '../shared/public-url.ts'
import { readElement } from '../shared/xml-path.ts'
import { createCredentials } from './credentials.ts'
import { explainReach, isFromService, notS3, Refusal } from './refusal.ts'
import type { S3Settings } from './settings.ts'
import { createSigner, formatQuery } from './sign.ts'

const HASH_OF_NOTHING = hash('sha256', '')

interface S3Request {
  readonly method: 'PUT' | 'POST' | 'HEAD' | 'DELETE'
  /** Object key, including the folder of the destination. */
  readonly key: string
  readonly query?: Readonly<Record<string, string>>
  /** Headers with lower-case names. */
  readonly headers?: Readonly<Record<string, string>>
  /** Required for `PUT` and `POST`. */
  readonly body?: S3Body
}

/** A body and its SHA-256, hex. The service compares it with the bytes that it receives. */
export type S3Body = Body & { readonly sha256: string }

/** Requests to the objects of one bucket. */
export interface S3Client {
  /**
   * Sends a request once.
   *
   * @throws Refusal if the service reports a failure
   * @throws Problem
   */
  send(request: S3Request, signal: AbortSignal): Promise<HttpReply>
  /** Creates a URL that opens one object for `expiresS` seconds, or until the credentials expire. */
  presign(key: string, expiresS: number, method?: 'GET' | 'HEAD'): Promise<SignedUrl>
}

export function createS3Client(settings: S3Settings, context: Pick<Context, 'http' | 'learn'>): S3Client {
  const { origin, host, pathname } = new URL(settings.bucketUrl)
  const folder = pathname.replace(/\/$/, '')
  const signer = createSigner(settings.region)
  const getCredentials = createCredentials(settings, context)
  const pathOf = (key: string): string => `${folder}/${encodeKey(key)}`

  return {
    async send(request, signal) {
      const { method, key, body } = request
      const path = pathOf(key)
      const query = formatQuery(request.query ?? {})
      const length = body && { 'content-length': String(body.size) }
      const headers = { ...request.headers, host, ...length }
      const toSign = { method, path, query, headers, sha256: body?.sha256 ?? HASH_OF_NOTHING }
      const signed = signer.sign(toSign, await getCredentials(), new Date())
      const url = `${origin}${path}${query && `?${query}`}`
      const reply = await context.http
        .send({ method, url, headers: signed, body, accept: () => true }, signal)
        .catch(error => {
          throw explainReach(error, settings)
        })
      // The end of a multipart upload has its status before the work is done: a failure shows in the document only.
      const isFailed = method === 'POST' && readElement(reply.text, 'Code') !== undefined
      if (reply.status < 200 || reply.status > 299 || isFailed)
        throw new Refusal(reply, settings, permissionFor(request))
      return reply
    },

    async presign(key, expiresS, method = 'GET') {
      const path = pathOf(key)
      const credentials = await getCredentials()
      const { expiration } = credentials
      const leftS = expiration ? Math.floor((expiration.getTime() - Date.now()) / 1000) : expiresS
      const query = signer.presign({ method, path, host, expiresS }, credentials, new Date())
      return { url: `${origin}${path}?${query}`, forS: Math.min(expiresS, leftS) }
    },
  }
}

/** What the policy of the bucket must allow for a request. */
function permissionFor({ method, query }: S3Request): string {
  if (method === 'HEAD') return 's3:GetObject and s3:ListBucket'
  if (method === 'DELETE') return query ? 's3:AbortMultipartUpload' : 's3:DeleteObject'
  return method === 'POST' ? 's3:PutObject and s3:AbortMultipartUpload' : 's3:PutObject'
}

/** Makes a request body of bytes in memory. */
export function bodyOf(bytes: Buffer): S3Body {
  return { ...inMemory(bytes), sha256: hash('sha256', bytes) }
}

/**
 * Returns the headers of an object. Undefined if no object has the key.
 *
 * @param key including the folder of the destination
 * @throws Problem if the server returns a success for every key, so it is not an S3 service
 */
export async function findObject(
  s3: S3Client,
  key: string,
  signal: AbortSignal,
): Promise<HttpReply['headers'] | undefined> {
  const found = await head(s3, key, signal)
  if (found.status === 404) return undefined
  if (isFromService(found.headers)) return found.headers
  // Some services send no request ID. They send none for a missing key either, and must return 404 for it.
  const other = await head(s3, `${key}-${randomUUID()}`, signal)
  if (other.status !== 404 || isFromService(other.headers)) throw notS3()
  return found.headers
}

async function head(
  s3: S3Client,
  key: string,
  signal: AbortSignal,
): Promise<Pick<HttpReply, 'status' | 'headers'>> {
  try {
    return await s3.send({ method: 'HEAD', key }, signal)
  } catch (error) {
    if (error instanceof Refusal && error.status === 404) return error
    throw error
  }
}
