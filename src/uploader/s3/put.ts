import { Readable } from 'node:stream'
import type { PutObjectCommand } from '@aws-sdk/client-s3'
import { UploadError } from '../../errors.ts'
import { streamBody } from '../body.ts'
import type { UploadObject } from '../provider.ts'
import type { S3Connection } from './client.ts'
import type { ObjectHead } from './multipart.ts'

/** Objects up to this size are sent from memory, in bytes; they lie there already, as a rule. */
const IN_MEMORY = 1024 * 1024

/** Sends an object in one request, whose length and hash are known before its first byte. */
export async function putAtOnce(
  { sdk, client }: S3Connection,
  head: ObjectHead,
  object: UploadObject,
  signal: AbortSignal,
): Promise<void> {
  const body = object.size <= IN_MEMORY ? await object.bytes() : streamBody(object, signal)
  const torn = new AbortController()
  // A stream that fails ends in silence when it is piped: the request would wait for the rest.
  if (body instanceof Readable) body.on('error', error => torn.abort(error))
  const command = new sdk.PutObjectCommand({ ...head, Body: body, ContentLength: object.size })
  signPayload(command, object.sha256)
  try {
    const answer = await client.send(command, { abortSignal: AbortSignal.any([signal, torn.signal]) })
    if (answer.ETag === undefined && answer.$metadata.requestId === undefined) throw notS3()
  } catch (error) {
    const reason: unknown = torn.signal.aborted ? torn.signal.reason : error
    torn.abort() // closes the connection when the answer came before all was sent
    throw reason
  } finally {
    if (body instanceof Readable) body.destroy()
  }
}

/** The SDK signs this hash instead of reading the body for it; the server compares it with what arrives. */
function signPayload(command: PutObjectCommand, sha256: string): void {
  command.middlewareStack.add(
    next => args => {
      const request = args.request as { headers: Record<string, string> }
      request.headers['x-amz-content-sha256'] = sha256
      return next(args)
    },
    { step: 'build', name: 'signPayload' },
  )
}

/**
 * A web server that says 200 to everything must not pass for a bucket. A service may leave out the ETag, as OpenStack
 * Swift does when a newer put of the same key has overtaken this one, but it has given the request an id then.
 */
function notS3(): UploadError {
  return new UploadError(
    'delivery_failed',
    'the answer has neither an ETag nor a request id, so it is no S3 service. Check "endpoint"',
  )
}
