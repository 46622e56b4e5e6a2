import { UploadError } from '../../errors.ts'
import { lendBody } from '../body.ts'
import type { UploadObject } from '../provider.ts'
import type { S3Client } from './client.ts'
import { requestIdOf } from './refusal.ts'

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
  if (reply.headers.etag === undefined && requestIdOf(reply.headers) === undefined) throw notS3()
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
