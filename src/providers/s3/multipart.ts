import { type Body, divide, hashOf } from '../../body.ts'
import { type RetryPolicy, retry } from '../../flow/retry.ts'
import { HttpRefusal } from '../../http/client.ts'
import { Problem } from '../../problem.ts'
import type { UploadObject } from '../contract.ts'
import { readElement } from '../shared/xml-path.ts'
import { bodyOf, type Headers, type S3Client, type S3Request } from './client.ts'
import { codeOf, notS3 } from './refusal.ts'

/** Number of parts of an object that are sent at the same time. */
const PARALLEL = 2
/** Time limit for aborting a failed upload, in milliseconds. */
const ABORT_MS = 10_000

const isGone = (error: unknown) => error instanceof HttpRefusal && codeOf(error.reply) === 'NoSuchUpload'
/** Attempts to send one request before the whole object fails, which then needs a new upload. So does one whose upload is gone. */
const POLICY: RetryPolicy = {
  attempts: 4,
  transient: error => !isGone(error) && error instanceof Problem && error.retryable && error,
}

/** Sends an object as a multipart upload. Aborts the upload if all attempts of one part fail, so that no parts remain. */
export async function putMultipart(
  s3: S3Client,
  key: string,
  headers: Headers,
  object: UploadObject,
  partSize: number,
  signal: AbortSignal,
): Promise<void> {
  const upload = await beginUpload(s3, key, headers, signal)
  const failed = new AbortController()
  const ending = AbortSignal.any([signal, failed.signal])
  const parts = divide(object, partSize).entries()
  const etags: string[] = []

  async function sendParts(): Promise<void> {
    for (const [index, part] of parts) etags[index] = await upload.sendPart(index + 1, part, ending)
  }

  try {
    await Promise.all(Array.from({ length: PARALLEL }, () => sendParts().catch(error => failed.abort(error))))
    ending.throwIfAborted()
    await upload.complete(etags, signal)
  } catch (error) {
    await upload.abort(AbortSignal.timeout(ABORT_MS)).catch(() => {})
    throw error
  }
}

/** @param headers HTTP headers to store with the object */
export async function beginUpload(s3: S3Client, key: string, headers: Headers, signal: AbortSignal) {
  const body = bodyOf(Buffer.alloc(0))
  const reply = await s3.send({ method: 'POST', key, query: { uploads: '' }, headers, body }, signal)
  const uploadId = readElement(reply.text, 'UploadId')
  if (uploadId === undefined) throw notS3('has no UploadId')

  /** Retries each request separately, so that a broken connection does not discard the parts that were sent. */
  const send = ({ query, ...request }: Omit<S3Request, 'key'>, signal: AbortSignal) =>
    retry(() => s3.send({ ...request, key, query: { ...query, uploadId } }, signal), POLICY, signal)

  return {
    /** Returns the ETag of the part. */
    async sendPart(number: number, part: Body, signal: AbortSignal): Promise<string> {
      const body = { ...part, sha256: await hashOf(part, 'sha256', signal) }
      const { headers } = await send({ method: 'PUT', query: { partNumber: String(number) }, body }, signal)
      if (headers['etag'] === undefined) throw notS3('has no ETag')
      return headers['etag']
    },
    /** If its response is lost, Amazon repeats it. Other services no longer have the upload, so the object is sent again. */
    async complete(etags: readonly string[], signal: AbortSignal): Promise<void> {
      const parts = etags.map(
        (etag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${escapeXml(etag)}</ETag></Part>`,
      )
      const list = `<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${parts.join('')}</CompleteMultipartUpload>`
      const headers = { 'content-type': 'application/xml' }
      const { text } = await send({ method: 'POST', headers, body: bodyOf(Buffer.from(list)) }, signal)
      if (!/MultipartUploadResult\b/.test(text)) throw notS3('has no CompleteMultipartUploadResult')
    },
    async abort(signal: AbortSignal): Promise<void> {
      await send({ method: 'DELETE' }, signal).catch(error => {
        if (!isGone(error)) throw error
      })
    },
  }
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
