import { hash } from 'node:crypto'
import { UploadError } from '../../errors.ts'
import type { HttpAgents } from '../../http/agents.ts'
import { type Content, endpointOf, exchange, MAX_REPLY_BYTES, type Reply } from '../../http/exchange.ts'
import { encodeKey } from '../shared/public-url.ts'
import { createCredentials } from './credentials.ts'
import { Refusal } from './refusal.ts'
import type { S3Settings } from './settings.ts'
import { createSigner, formatQuery } from './sign.ts'

const HASH_OF_NOTHING = hash('sha256', '')

export interface S3Request {
  readonly method: 'PUT' | 'POST' | 'HEAD' | 'DELETE'
  /** Of the object, with the folder in front of it. */
  readonly key: string
  readonly query?: Readonly<Record<string, string>>
  /** With lower-case names. */
  readonly headers?: Readonly<Record<string, string>>
  /** Needed by `PUT` and `POST`. */
  readonly body?: S3Body
}

export interface S3Body {
  readonly content: Content
  /** Bytes. */
  readonly size: number
  /** Hex. The server compares it with what arrives. */
  readonly sha256: string
}

/** Requests to the objects of one bucket. */
export interface S3Client {
  /**
   * Sends a request once.
   *
   * @throws Refusal when the status is not 200 to 299
   * @throws UploadError `delivery_failed`, whose message is the end of a sentence; or what `exchange` throws
   */
  send(request: S3Request, signal: AbortSignal): Promise<Reply>
  /** A URL that opens one object for so many seconds. */
  presign(key: string, expiresS: number): Promise<string>
}

export function createS3Client(settings: S3Settings, agents: HttpAgents): S3Client {
  const bucket = new URL(settings.bucketUrl)
  const { host } = bucket
  const endpoint = endpointOf(bucket)
  const folder = bucket.pathname.replace(/\/$/, '')
  const signer = createSigner(settings.region)
  const getCredentials = createCredentials(settings)
  const pathOf = (key: string): string => `${folder}/${encodeKey(key)}`

  return {
    async send({ method, key, query = {}, headers, body }, signal) {
      const credentials = await getCredentials()
      const agent = await agents.get(bucket)
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
          ...{ agent, method },
          path: request.query ? `${request.path}?${request.query}` : request.path,
          headers: { ...signed, 'user-agent': 'upload-server' },
          body: body?.content,
        },
        signal,
      )
      if (reply.isCut) throw tooLong()
      if (reply.status < 200 || reply.status > 299) throw new Refusal(reply)
      return reply
    },

    async presign(key, expiresS) {
      const path = pathOf(key)
      const query = signer.presign({ path, host, expiresS }, await getCredentials(), new Date())
      return `${bucket.origin}${path}?${query}`
    },
  }
}

function tooLong(): UploadError {
  return new UploadError('delivery_failed', `its answer is longer than ${MAX_REPLY_BYTES} bytes`)
}

/** Bytes in memory as a body. */
export function bodyOf(content: Buffer): S3Body {
  return { content, size: content.length, sha256: hash('sha256', content) }
}
