import { createHash } from 'node:crypto'
import { type Body, divide, hashOf } from '../../body.ts'
import { type RetryPolicy, retry } from '../../flow/retry.ts'
import { HttpRefusal } from '../../http/client.ts'
import { Problem } from '../../problem.ts'
import type { UploadObject } from '../contract.ts'
import { readElement } from '../shared/xml-path.ts'
import { bodyOf, findObject, type S3Client } from './client.ts'
import { codeOf, notS3 } from './refusal.ts'

/** Number of parts of an object that are sent at the same time. */
const PARALLEL = 2
/** Number of attempts to send one request before the whole upload fails. */
const ATTEMPTS = 4
/** Time limit for aborting a failed upload, in milliseconds. */
const ABORT_MS = 10_000

const isGone = (error: unknown) => error instanceof HttpRefusal && codeOf(error.reply) === 'NoSuchUpload'
/** An upload that is gone is transient only for the whole object, which needs a new upload. */
const UNLESS_GONE: RetryPolicy = {
  attempts: ATTEMPTS,
  transient: error => !isGone(error) && error instanceof Problem && error.retryable && error,
}

/** A multipart upload that was started. */
export interface MultipartUpload {
  readonly key: string
  readonly uploadId: string
}

/** Sends an object as a multipart upload. Aborts the upload if all attempts of one part fail, so that no parts remain. */
export async function putMultipart(
  s3: S3Client,
  key: string,
  headers: Readonly<Record<string, string>>,
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
    for (const [index, part] of parts) etags[index] = await sendPart(s3, upload, index + 1, part, ending)
  }

  try {
    await Promise.all(Array.from({ length: PARALLEL }, () => sendParts().catch(error => failed.abort(error))))
    ending.throwIfAborted()
    await completeUpload(s3, upload, etags, ending)
  } catch (error) {
    await abortUpload(s3, upload, AbortSignal.timeout(ABORT_MS)).catch(() => {})
    throw error
  }
}

/** @param headers HTTP headers to store with the object */
export async function beginUpload(
  s3: S3Client,
  key: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<MultipartUpload> {
  const body = bodyOf(Buffer.alloc(0))
  const reply = await s3.send({ method: 'POST', key, query: { uploads: '' }, headers, body }, signal)
  const uploadId = readElement(reply.text, 'UploadId')
  if (uploadId === undefined) throw notS3('has no UploadId')
  return { key, uploadId }
}

export async function abortUpload(
  s3: S3Client,
  { key, uploadId }: MultipartUpload,
  signal: AbortSignal,
): Promise<void> {
  const send = () => s3.send({ method: 'DELETE', key, query: { uploadId } }, signal)
  await retry(send, UNLESS_GONE, signal).catch(error => {
    if (!isGone(error)) throw error
  })
}

/** Retries each part separately, so that a broken connection does not discard the parts that were sent. */
async function sendPart(
  s3: S3Client,
  { key, uploadId }: MultipartUpload,
  number: number,
  part: Body,
  signal: AbortSignal,
): Promise<string> {
  const body = { ...part, sha256: await hashOf(part, 'sha256', signal) }
  const query = { partNumber: String(number), uploadId }
  const send = () => s3.send({ method: 'PUT', key, query, body }, signal)
  const { headers } = await retry(send, { attempts: ATTEMPTS }, signal)
  if (headers['etag'] === undefined) throw notS3('has no ETag')
  return headers['etag']
}

async function completeUpload(
  s3: S3Client,
  { key, uploadId }: MultipartUpload,
  etags: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const parts = etags.map(
    (etag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${escapeXml(etag)}</ETag></Part>`,
  )
  const list = `<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${parts.join('')}</CompleteMultipartUpload>`
  const body = bodyOf(Buffer.from(list))
  const headers = { 'content-type': 'application/xml' }
  const send = async () => {
    const reply = await s3.send({ method: 'POST', key, query: { uploadId }, headers, body }, signal)
    if (!/MultipartUploadResult\b/.test(reply.text)) throw notS3('has no CompleteMultipartUploadResult')
  }
  try {
    await retry(send, UNLESS_GONE, signal)
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof HttpRefusal && !error.retryable) throw error
    // If the response was lost, the object may exist anyway. An earlier one with the same key has another ETag.
    const found = await findObject(s3, key, signal).catch(() => undefined)
    if (found?.['etag']?.replaceAll('"', '').toLowerCase() !== etagOf(etags)) throw error
  }
}

/** The ETag of an object in parts at most services: the MD5 of the MD5s of the parts. Elsewhere, all is sent again. */
function etagOf(parts: readonly string[]): string {
  const names = Buffer.from(parts.join('').replaceAll('"', ''), 'hex')
  return `${createHash('md5').update(names).digest('hex')}-${parts.length}`
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
