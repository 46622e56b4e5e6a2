import { UploadError } from '../../errors.ts'
import { readParts } from '../body.ts'
import type { UploadObject } from '../provider.ts'
import { retry } from '../retry.ts'
import { bodyOf, type S3Client } from './client.ts'
import type { Reply } from './exchange.ts'
import { isPassing, Refusal, readElement, retryAfterOf } from './refusal.ts'

/** Parts that are sent at the same time, and so the parts in memory. */
const PARALLEL = 2
/** How often one part is sent before the whole upload fails. */
const PART_ATTEMPTS = 4
/** How long taking back a failed upload may last. */
const TAKE_BACK_MS = 10_000

/** An upload in parts that has begun. */
interface Upload {
  readonly key: string
  readonly uploadId: string
}

/** Sends an object in parts. Ends at the first part that fails for good, and takes back what had arrived. */
export async function putInParts(
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
  const parts = readParts(object, partSize, ending)
  const etags: string[] = []

  async function sendParts(): Promise<void> {
    for await (const { number, bytes, release } of parts) {
      etags[number - 1] = await sendPart(s3, upload, number, bytes, ending)
      release()
    }
  }

  try {
    await Promise.all(Array.from({ length: PARALLEL }, () => sendParts().catch(error => failed.abort(error))))
    ending.throwIfAborted()
    await completeUpload(s3, upload, etags, ending)
  } catch (error) {
    await abortUpload(s3, upload, AbortSignal.timeout(TAKE_BACK_MS)).catch(() => {})
    throw error
  }
}

/** @param headers of the object */
export async function beginUpload(
  s3: S3Client,
  key: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Upload> {
  const body = bodyOf(Buffer.alloc(0))
  const { text } = await s3.send({ method: 'POST', key, query: { uploads: '' }, headers, body }, signal)
  return { key, uploadId: readElement(text, 'UploadId') ?? missing('UploadId') }
}

export async function abortUpload(
  s3: S3Client,
  { key, uploadId }: Upload,
  signal: AbortSignal,
): Promise<void> {
  await s3.send({ method: 'DELETE', key, query: { uploadId } }, signal)
}

/** Sends a part again by itself, so that a broken connection does not cost the parts that have arrived. */
async function sendPart(
  s3: S3Client,
  { key, uploadId }: Upload,
  number: number,
  bytes: Buffer,
  signal: AbortSignal,
): Promise<string> {
  const query = { partNumber: String(number), uploadId }
  const request = { method: 'PUT', key, query, body: bodyOf(bytes) } as const
  const { headers } = await sendPatiently(() => s3.send(request, signal), signal)
  return headers.etag ?? missing('ETag')
}

async function completeUpload(
  s3: S3Client,
  { key, uploadId }: Upload,
  etags: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const parts = etags.map(
    (etag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${escapeXml(etag)}</ETag></Part>`,
  )
  const list = `<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${parts.join('')}</CompleteMultipartUpload>`
  const body = bodyOf(Buffer.from(list))
  const headers = { 'content-type': 'application/xml' }
  await sendPatiently(async () => {
    const reply = await s3.send({ method: 'POST', key, query: { uploadId }, headers, body }, signal)
    // The status is sent before the work is done: a failure shows in the document only.
    if (readElement(reply.text, 'Code') !== undefined) throw new Refusal(reply)
    return reply
  }, signal)
}

function sendPatiently(send: () => Promise<Reply>, signal: AbortSignal): Promise<Reply> {
  return retry(send, PART_ATTEMPTS, error => isPassing(error) && { retryAfterS: retryAfterOf(error) }, signal)
}

function missing(name: string): never {
  throw new UploadError(
    'delivery_failed',
    `its answer has no ${name}, so it is no S3 service. Check "endpoint"`,
  )
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
