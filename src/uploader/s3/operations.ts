import { randomUUID } from 'node:crypto'
import type { UploadObject } from '../provider.ts'
import { joinUrl } from '../public-url.ts'
import type { S3Client } from './client.ts'
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

/**
 * Begins an upload in parts and takes it back: that needs the rights of a put, the same headers are looked at, and
 * unlike a small object nothing can stay behind, not even in a bucket with versions or without the right to delete.
 */
export async function probeBucket(s3: S3Client, settings: S3Settings, signal: AbortSignal): Promise<void> {
  const key = `${settings.keyPrefix}upload-server-${randomUUID()}`
  const headers = { ...settings.headers, 'content-type': 'text/plain' }
  await abortUpload(s3, await beginUpload(s3, key, headers, signal), signal)
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
