import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { UploadError } from '../../errors.ts'
import type { UploadObject } from '../contract.ts'
import { joinUrl } from '../shared/public-url.ts'
import { bodyOf, type S3Client } from './client.ts'
import { findObject } from './find.ts'
import { abortUpload, beginUpload, putInParts } from './multipart.ts'
import { notS3, putAtOnce } from './put.ts'
import { isFromService, Refusal } from './refusal.ts'
import type { S3Settings } from './settings.ts'

/** Stores an object and gives its URL. */
export async function storeObject(
  s3: S3Client,
  settings: S3Settings,
  object: UploadObject,
  signal: AbortSignal,
): Promise<string> {
  const { keyPrefix, urlFolder, publicUrl, options } = settings
  const key = keyPrefix + object.key
  const headers = { ...settings.headers, 'content-type': object.contentType }
  if (object.size > options.multipartThreshold) {
    await putInParts(s3, key, headers, object, settings.partSizeOf(object.size), signal)
  } else {
    await putAtOnce(s3, key, headers, object, signal)
  }
  if (publicUrl === undefined) return s3.presign(key, options.presignedForS)
  return joinUrl(publicUrl, urlFolder + object.key) + (options.urlSuffix ?? '')
}

/** How services without multipart refuse it. */
const WITHOUT_PARTS = new Set([400, 404, 405, 501])

/**
 * Begins an upload in parts and takes it back: that needs the rights of a put, the same headers are looked at, and
 * unlike a small object nothing can stay behind, not even in a bucket with versions or without the right to delete.
 * Where there are no uploads in parts, a small object is stored and removed.
 *
 * @returns a sentence about what can't be stored; undefined when everything can
 */
export async function probeBucket(
  s3: S3Client,
  settings: S3Settings,
  signal: AbortSignal,
): Promise<string | undefined> {
  const name = `upload-server-${randomUUID()}`
  const key = settings.keyPrefix + name
  const headers = { ...settings.headers, 'content-type': 'text/plain' }
  try {
    await abortUpload(s3, await beginUpload(s3, key, headers, signal), signal)
    return undefined
  } catch (error) {
    signal.throwIfAborted()
    const mayLackParts = error instanceof Refusal ? WITHOUT_PARTS.has(error.facts.status) : isNoService(error)
    if (!mayLackParts || !(await takesSmall(s3, key, headers, signal))) throw error
    await removeObject(s3, settings, name, signal)
    return `it takes no uploads in parts, so files of more than ${settings.options.multipartThreshold} bytes can't be stored. Raise "multipartThreshold" to send larger ones at once.`
  }
}

/** An answer that makes no sense to us, unlike a connection that fails. */
function isNoService(error: unknown): boolean {
  return error instanceof UploadError && !error.retryable
}

async function takesSmall(
  s3: S3Client,
  key: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<boolean> {
  const bytes = Buffer.from('probe')
  const { size, sha256 } = bodyOf(bytes)
  const object: UploadObject = {
    ...{ key, size, sha256, contentType: 'text/plain' },
    stream: () => Readable.from([bytes], { objectMode: false }),
    bytes: async () => bytes,
  }
  return putAtOnce(s3, key, headers, object, signal).then(
    () => true,
    () => false,
  )
}

export async function hasObject(
  s3: S3Client,
  { keyPrefix }: S3Settings,
  key: string,
  signal: AbortSignal,
): Promise<boolean> {
  return (await findObject(s3, keyPrefix + key, signal)) !== undefined
}

export async function removeObject(
  s3: S3Client,
  { keyPrefix }: S3Settings,
  key: string,
  signal: AbortSignal,
): Promise<void> {
  try {
    const { headers } = await s3.send({ method: 'DELETE', key: keyPrefix + key }, signal)
    if (isFromService(headers)) return
  } catch (error) {
    if (!(error instanceof Refusal) || error.facts.code !== 'NoSuchKey') throw error
  }
  if (await findObject(s3, keyPrefix + key, signal)) throw notS3()
}
