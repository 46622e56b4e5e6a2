import { createHash } from 'node:crypto'
import { UploadError } from '../../errors.ts'
import type { Reply } from '../../http/exchange.ts'
import type { UploadObject } from '../contract.ts'
import { lendBody, readBody } from '../shared/body.ts'
import type { S3Client } from './client.ts'
import { isFromService } from './refusal.ts'

/** Objects in memory up to this size are sent at once, in bytes. */
const AT_ONCE = 1024 * 1024

/** Sends an object in one request, whose length and hash are known before its first byte. */
export async function putAtOnce(
  s3: S3Client,
  key: string,
  headers: Readonly<Record<string, string>>,
  object: UploadObject,
  signal: AbortSignal,
): Promise<void> {
  const { path, size, sha256 } = object
  const isSmall = path === undefined && size <= AT_ONCE
  const content = isSmall ? await object.bytes() : lendBody(object, signal)
  const reply = await s3.send({ method: 'PUT', key, headers, body: { content, size, sha256 } }, signal)
  if (!(await isStored(reply, object, signal))) throw notS3()
}

/**
 * Whether the answer to a put is that of a service: it has an id, or is empty and has an ETag. One that looks like an MD5
 * has to be that of the object; those of encrypted objects and of some services look otherwise.
 */
async function isStored(
  { headers, text }: Reply,
  object: UploadObject,
  signal: AbortSignal,
): Promise<boolean> {
  if (isFromService(headers)) return true
  const etag = headers.etag?.replaceAll('"', '').toLowerCase()
  if (etag === undefined || text.trim() !== '') return false
  return !/^[\da-f]{32}$/.test(etag) || etag === (await hashMd5(object, signal))
}

async function hashMd5(object: UploadObject, signal: AbortSignal): Promise<string> {
  const hash = createHash('md5')
  for await (const chunk of readBody(object, signal)) hash.update(chunk)
  return hash.digest('hex')
}

/**
 * A web server that says 200 to everything must not pass for a bucket. A service may leave out the ETag, as OpenStack
 * Swift does when a newer put of the same key has overtaken this one, but it has given the request an id then.
 */
export function notS3(): UploadError {
  return new UploadError(
    'delivery_failed',
    'the answer has neither an ETag nor a request id, so it is no S3 service. Check "endpoint"',
  )
}
