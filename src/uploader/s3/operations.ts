import { randomUUID } from 'node:crypto'
import { importOptional } from '../optional.ts'
import type { UploadObject } from '../provider.ts'
import { joinUrl } from '../public-url.ts'
import type { S3Connection } from './client.ts'
import { type ObjectHead, putInParts } from './multipart.ts'
import { putAtOnce } from './put.ts'
import type { S3Settings } from './settings.ts'

/** Stores an object and gives its URL. */
export async function storeObject(
  s3: S3Connection,
  settings: S3Settings,
  object: UploadObject,
  signal: AbortSignal,
): Promise<string> {
  const { keyPrefix, urlFolder, publicUrl, options } = settings
  const head = headOf(settings, keyPrefix + object.key, object.contentType)
  if (object.size > options.multipartThreshold) {
    await putInParts(s3, head, object, settings.partSizeOf(object.size), signal)
  } else {
    await putAtOnce(s3, head, object, signal)
  }
  if (publicUrl === undefined) return presign(s3, settings, object.key)
  return joinUrl(publicUrl, urlFolder + object.key) + (options.urlSuffix ?? '')
}

/**
 * Begins an upload in parts and takes it back: that needs the rights of a put, the same headers are looked at, and
 * unlike a small object nothing can stay behind, not even in a bucket with versions or without the right to delete.
 */
export async function probeBucket(
  { sdk, client }: S3Connection,
  settings: S3Settings,
  abortSignal: AbortSignal,
): Promise<void> {
  const head = headOf(settings, `${settings.keyPrefix}upload-server-${randomUUID()}`, 'text/plain')
  const { UploadId } = await client.send(new sdk.CreateMultipartUploadCommand(head), { abortSignal })
  const { Bucket, Key } = head
  await client.send(new sdk.AbortMultipartUploadCommand({ Bucket, Key, UploadId }), { abortSignal })
}

export async function hasObject(
  { sdk, client }: S3Connection,
  settings: S3Settings,
  key: string,
  abortSignal: AbortSignal,
): Promise<boolean> {
  const command = new sdk.HeadObjectCommand(placeOf(settings, key))
  return (await client.send(command, { abortSignal }).catch(ignoreAbsent)) !== undefined
}

export async function removeObject(
  { sdk, client }: S3Connection,
  settings: S3Settings,
  key: string,
  abortSignal: AbortSignal,
): Promise<void> {
  await client.send(new sdk.DeleteObjectCommand(placeOf(settings, key)), { abortSignal }).catch(ignoreAbsent)
}

async function presign({ sdk, client }: S3Connection, settings: S3Settings, key: string): Promise<string> {
  const { getSignedUrl } = await importOptional(
    '@aws-sdk/s3-request-presigner',
    () => import('@aws-sdk/s3-request-presigner'),
  )
  const command = new sdk.GetObjectCommand(placeOf(settings, key))
  return getSignedUrl(client, command, { expiresIn: settings.options.presignedForS })
}

function placeOf(settings: S3Settings, key: string): { Bucket: string; Key: string } {
  return { Bucket: bucketParameter(settings), Key: settings.keyPrefix + key }
}

/** With a domain of the bucket's own, the SDK wants that address in the place of the name. */
function bucketParameter({ style, endpoint, bucket }: S3Settings): string {
  return style === 'cname' ? endpoint : bucket
}

function headOf(settings: S3Settings, Key: string, ContentType: string): ObjectHead {
  const { acl, storageClass, serverSideEncryption, sseKmsKeyId, contentDisposition } = settings.options
  return {
    Bucket: bucketParameter(settings),
    Key,
    ContentType,
    CacheControl: settings.cacheControl,
    ContentDisposition: contentDisposition,
    ...(acl && { ACL: acl }),
    ...(storageClass && { StorageClass: storageClass as NonNullable<ObjectHead['StorageClass']> }),
    ...(serverSideEncryption && { ServerSideEncryption: serverSideEncryption }),
    ...(sseKmsKeyId && { SSEKMSKeyId: sseKmsKeyId }),
  }
}

function ignoreAbsent(error: unknown): undefined {
  const name = error instanceof Error ? error.name : ''
  if (name !== 'NotFound' && name !== 'NoSuchKey') throw error
}
