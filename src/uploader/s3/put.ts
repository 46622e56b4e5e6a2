import { UploadError } from '../../errors.ts'
import { streamBody } from '../body.ts'
import type { UploadObject } from '../provider.ts'
import type { S3Client } from './client.ts'
import { requestIdOf } from './refusal.ts'

/** Objects up to this size are sent from memory, in bytes; they lie there already, as a rule. */
const IN_MEMORY = 1024 * 1024

/** Sends an object in one request, whose length and hash are known before its first byte. */
export async function putAtOnce(
  s3: S3Client,
  key: string,
  headers: Readonly<Record<string, string>>,
  object: UploadObject,
  signal: AbortSignal,
): Promise<void> {
  const { size, sha256 } = object
  const content = size <= IN_MEMORY ? await object.bytes() : streamBody(object, signal)
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
