import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { UploadError } from '../../errors.ts'
import { type Passing, retry } from '../../flow/retry.ts'
import type { UploadObject } from '../contract.ts'
import { type BodyPart, readParts } from '../shared/body.ts'
import { readElement } from '../shared/xml-path.ts'
import { bodyOf, findObject, type S3Client } from './client.ts'
import { mayPass, Refusal, retryAfterOf } from './refusal.ts'

/** Parts of an object that are sent at the same time. */
const PARALLEL = 2
/** How often one part is sent before the whole upload fails. */
const PART_ATTEMPTS = 4
const IS_COMPLETE = /MultipartUploadResult\b/
/** How long taking back a failed upload may last. */
const TAKE_BACK_MS = 10_000

/** An upload in parts that has begun. */
interface MultipartUpload {
  readonly key: string
  readonly uploadId: string
  /** By the clock of the service; NaN when it does not say. */
  readonly begunAt: number
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
    for await (const part of parts) {
      etags[part.number - 1] = await sendPart(s3, upload, part, ending)
      part.release()
    }
  }

  try {
    await Promise.all(Array.from({ length: PARALLEL }, () => sendParts().catch(error => failed.abort(error))))
    ending.throwIfAborted()
    await completeUpload(s3, upload, object.size, etags, ending)
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
): Promise<MultipartUpload> {
  const body = bodyOf(Buffer.alloc(0))
  const request = { method: 'POST', key, query: { uploads: '' }, headers, body } as const
  const reply = await s3.send(request, signal)
  const uploadId = readElement(reply.text, 'UploadId') ?? missing('UploadId')
  return { key, uploadId, begunAt: Date.parse(reply.headers.date ?? '') }
}

export async function abortUpload(
  s3: S3Client,
  { key, uploadId }: MultipartUpload,
  signal: AbortSignal,
): Promise<void> {
  await s3.send({ method: 'DELETE', key, query: { uploadId } }, signal)
}

/** Sends a part again by itself, so that a broken connection does not cost the parts that have arrived. */
async function sendPart(
  s3: S3Client,
  { key, uploadId }: MultipartUpload,
  part: BodyPart,
  signal: AbortSignal,
): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of part.chunks()) hash.update(chunk)
  const facts = { size: part.end - part.start, sha256: hash.digest('hex') }
  const query = { partNumber: String(part.number), uploadId }
  const send = () =>
    s3.send({ method: 'PUT', key, query, body: { ...facts, content: part.chunks() } }, signal)
  const { headers } = await retry(send, { attempts: PART_ATTEMPTS, passing }, signal)
  return headers.etag ?? missing('ETag')
}

/** @param size of the object */
async function completeUpload(
  s3: S3Client,
  upload: MultipartUpload,
  size: number,
  etags: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const { key, uploadId } = upload
  const parts = etags.map(
    (etag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${escapeXml(etag)}</ETag></Part>`,
  )
  const list = `<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${parts.join('')}</CompleteMultipartUpload>`
  const body = bodyOf(Buffer.from(list))
  const headers = { 'content-type': 'application/xml' }
  const send = async () => {
    const reply = await s3.send({ method: 'POST', key, query: { uploadId }, headers, body }, signal)
    // The status is sent before the work is done: a failure shows in the document only.
    if (readElement(reply.text, 'Code') !== undefined) throw new Refusal(reply)
    if (!IS_COMPLETE.test(reply.text)) missing('CompleteMultipartUploadResult')
  }
  try {
    const unlessGone = (error: unknown) => !isUploadGone(error) && passing(error)
    await retry(send, { attempts: PART_ATTEMPTS, passing: unlessGone }, signal)
  } catch (error) {
    signal.throwIfAborted()
    // Where an answer was lost, the object may be there all the same.
    const isRefused = error instanceof Refusal && !mayPass(error)
    const found = isRefused ? undefined : await findObject(s3, key, signal).catch(() => undefined)
    if (!found || !isResult(found, upload, size, etags)) throw error
  }
}

/** Whether an object is what an upload in parts has made, and not what was there before. */
function isResult(
  found: IncomingHttpHeaders,
  { begunAt }: MultipartUpload,
  size: number,
  etags: readonly string[],
): boolean {
  const etag = found.etag?.replaceAll('"', '').toLowerCase()
  if (found['content-length'] !== String(size) || !etag?.endsWith(`-${etags.length}`)) return false
  // Most services name the object by the MD5 of the MD5s of its parts.
  const names = Buffer.from(etags.join('').replaceAll('"', ''), 'hex')
  const isOfParts = etag === `${createHash('md5').update(names).digest('hex')}-${etags.length}`
  return isOfParts || Date.parse(found['last-modified'] ?? '') >= begunAt
}

function passing(error: unknown): Passing | false {
  return mayPass(error) && { retryAfterS: retryAfterOf(error) }
}

function isUploadGone(error: unknown): boolean {
  return error instanceof Refusal && error.facts.code === 'NoSuchUpload'
}

function missing(name: string): never {
  throw new UploadError(
    'delivery_failed',
    `the response has no ${name}, so it is not from an S3 service. Check "endpoint"`,
  )
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
