import { hash, randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { type Body, inMemory } from '../../body.ts'
import type { HttpAgents } from '../../http/agents.ts'
import { endpointOf, exchange, MAX_REPLY_BYTES, type RawReply } from '../../http/exchange.ts'
import { Problem } from '../../problem.ts'
import type { SignedUrl } from '../contract.ts'
import { encodeKey } from '../shared/public-url.ts'
import { type CredentialsDeps, createCredentials } from './credentials.ts'
import { isFromService, Refusal } from './refusal.ts'
import type { S3Settings } from './settings.ts'
import { createSigner, formatQuery } from './sign.ts'

const HASH_OF_NOTHING = hash('sha256', '')

interface S3Request {
  readonly method: 'PUT' | 'POST' | 'HEAD' | 'DELETE'
  /** Object key, including the folder of the destination. Empty: the bucket. */
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
   * @throws Refusal if the status is not 200 to 299
   * @throws Problem, or what `exchange` throws
   */
  send(request: S3Request, signal: AbortSignal): Promise<RawReply>
  /** Creates a URL that opens one object for `expiresS` seconds, or until the credentials expire. */
  presign(key: string, expiresS: number, method?: 'GET' | 'HEAD'): Promise<SignedUrl>
}

export function createS3Client(settings: S3Settings, agents: HttpAgents, deps?: CredentialsDeps): S3Client {
  const bucket = new URL(settings.bucketUrl)
  const { host } = bucket
  const endpoint = endpointOf(bucket)
  const folder = bucket.pathname.replace(/\/$/, '')
  const signer = createSigner(settings.region)
  const getCredentials = createCredentials(settings, deps)
  const pathOf = (key: string): string => `${folder}/${encodeKey(key)}`

  return {
    async send({ method, key, query = {}, headers, body }, signal) {
      const credentials = await getCredentials()
      const way = await agents.get(bucket)
      const request = {
        method,
        path: pathOf(key),
        query: formatQuery(query),
        headers: { ...headers, host, ...(body && { 'content-length': String(body.size) }) },
        sha256: body?.sha256 ?? HASH_OF_NOTHING,
      }
      const signed = signer.sign(request, credentials, new Date())
      const reply = await exchange(
        {
          ...endpoint,
          way,
          method,
          path: request.query ? `${request.path}?${request.query}` : request.path,
          headers: { ...signed, 'user-agent': 'upload-server' },
          body,
        },
        signal,
      )
      if (reply.isCut) throw new Problem(`its response is longer than ${MAX_REPLY_BYTES} bytes`)
      if (reply.status < 200 || reply.status > 299) throw new Refusal(reply)
      return reply
    },

    async presign(key, expiresS, method = 'GET') {
      const path = pathOf(key)
      const credentials = await getCredentials()
      const { expiration } = credentials
      const leftS = expiration ? Math.floor((expiration.getTime() - Date.now()) / 1000) : expiresS
      const query = signer.presign({ method, path, host, expiresS }, credentials, new Date())
      return { url: `${bucket.origin}${path}?${query}`, forS: Math.min(expiresS, leftS) }
    },
  }
}

/** Makes a request body of bytes in memory. */
export function bodyOf(bytes: Buffer): S3Body {
  return { ...inMemory(bytes), sha256: hash('sha256', bytes) }
}

/** Escapes text for an element of a request body. */
export function escapeXml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
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
): Promise<IncomingHttpHeaders | undefined> {
  const found = await ask(s3, key, signal)
  if (found.status === 404) return undefined
  if (isFromService(found.headers)) return found.headers
  // Some services send no request ID. They send none for a missing key either, and must return 404 for it.
  const other = await ask(s3, `${key}-${randomUUID()}`, signal)
  if (other.status !== 404 || isFromService(other.headers)) throw notS3()
  return found.headers
}

async function ask(
  s3: S3Client,
  key: string,
  signal: AbortSignal,
): Promise<{ status: number; headers: IncomingHttpHeaders }> {
  try {
    return await s3.send({ method: 'HEAD', key }, signal)
  } catch (error) {
    if (error instanceof Refusal && error.facts.status === 404) return error.facts
    throw error
  }
}

/**
 * Makes the error for a web server that returns 200 for every request. A service may omit the ETag, as OpenStack Swift does
 * after a newer put with the same key has finished first, but then it sends a request ID.
 */
export function notS3(): Problem {
  return new Problem('the response has neither an ETag nor a request ID, so it is not from an S3 service', {
    advice: 'Check "endpoint".',
  })
}
