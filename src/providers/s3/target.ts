import { randomUUID } from 'node:crypto'
import { hashOf } from '../../body.ts'
import type { HttpReply } from '../../http/client.ts'
import { showSize } from '../../options.ts'
import { Problem } from '../../problem.ts'
import type { Context, Target } from '../contract.ts'
import { joinUrl } from '../shared/public-url.ts'
import { bodyOf, createS3Client, findObject, type S3Access, type S3Body, type S3Client } from './client.ts'
import { credentialsOfEnvironment } from './credentials.ts'
import { abortUpload, beginUpload, putMultipart } from './multipart.ts'
import { isFromService, notS3, Refusal } from './refusal.ts'
import type { S3Settings } from './settings.ts'

type Headers = Readonly<Record<string, string>>

/**
 * Opens a bucket.
 *
 * @param type type of the provider, for messages
 * @param getAccess default: by the settings, with the credentials of the options or of the environment
 */
export function openS3(
  type: string,
  settings: S3Settings,
  context: Pick<Context, 'name' | 'warn' | 'http' | 'learn'>,
  getAccess: (signal?: AbortSignal) => Promise<S3Access> = accessBy(settings, context),
): Target {
  const s3 = createS3Client(settings, context.http, getAccess)
  const { keyPrefix, urlFolder, publicUrl, presignedForS, options } = settings
  return {
    location: settings.location,
    traits: { atomic: true, linksExpire: publicUrl === undefined },
    async put(object, signal) {
      const key = keyPrefix + object.key
      const headers = { ...settings.headers, 'content-type': object.contentType }
      if (object.size <= options.multipartThreshold) await putAtOnce(s3, key, headers, object, signal)
      else await putMultipart(s3, key, headers, object, settings.partSizeOf(object.size), signal)
      if (publicUrl === undefined) return { url: (await s3.presign(key, presignedForS)).url }
      return { url: joinUrl(publicUrl, urlFolder + object.key) + (options.urlSuffix ?? '') }
    },
    async check(signal) {
      const key = `${keyPrefix}upload-server-${randomUUID()}`
      const headers = { ...settings.headers, 'content-type': 'text/plain' }
      if (await probeBucket(s3, key, headers, signal)) return
      const most = showSize(options.multipartThreshold)
      // Of the S3 types, only "s3" has the option: the vendors of the others support multipart uploads.
      const advice =
        type === 's3' ? ' Increase "multipartThreshold" to send larger files in one request.' : ''
      context.warn(
        `${type}/${context.name}: the service does not support multipart uploads, so files larger than ${most} can't be stored.${advice}`,
      )
    },
    exists: async (key, signal) => (await findObject(s3, keyPrefix + key, signal)) !== undefined,
    remove: (key, signal) => removeObject(s3, keyPrefix + key, signal),
    sign: (key, method, mostS) => s3.presign(keyPrefix + key, Math.min(presignedForS, mostS), method),
  }
}

function accessBy(
  { bucketUrl, region, credentials }: S3Settings,
  context: Pick<Context, 'http' | 'learn'>,
): () => Promise<S3Access> {
  const find = credentials ? async () => credentials : credentialsOfEnvironment(region, context)
  return async () => ({ bucketUrl, credentials: await find() })
}

/** Removes an object. A missing object counts as removed. */
async function removeObject(s3: S3Client, key: string, signal: AbortSignal): Promise<void> {
  try {
    const { headers } = await s3.send({ method: 'DELETE', key }, signal)
    if (isFromService(headers)) return
  } catch (error) {
    if (!(error instanceof Refusal) || error.s3Code !== 'NoSuchKey') throw error
  }
  if (await findObject(s3, key, signal)) throw notS3()
}

/** Sends an object in one request. The length and the hash are known before the first byte. */
async function putAtOnce(
  s3: S3Client,
  key: string,
  headers: Headers,
  body: S3Body,
  signal: AbortSignal,
): Promise<void> {
  const reply = await s3.send({ method: 'PUT', key, headers, body }, signal)
  if (!(await isStored(reply, body, signal))) throw notS3()
}

/**
 * Returns whether the response to a PUT is from an S3 service: it has a request ID, or is empty and has an ETag. An ETag that
 * looks like an MD5 must be that of the object. Encrypted objects and some services have other ETags.
 */
async function isStored({ headers, text }: HttpReply, body: S3Body, signal: AbortSignal): Promise<boolean> {
  if (isFromService(headers)) return true
  const etag = headers['etag']?.replaceAll('"', '').toLowerCase()
  if (etag === undefined || text.trim() !== '') return false
  return !/^[\da-f]{32}$/.test(etag) || etag === (await hashOf(body, 'md5', signal))
}

/** Statuses with which services without multipart uploads reject them. */
const WITHOUT_PARTS = [400, 404, 405, 501]

/**
 * Starts a multipart upload and aborts it. This needs the permissions of a PUT and validates the same headers. Unlike a small
 * object, it leaves nothing behind, even in a bucket with versioning or without the permission to delete.
 * If the service does not support multipart uploads, a small object is stored and removed.
 *
 * @param key including the folder of the destination
 * @returns whether the service supports multipart uploads
 */
async function probeBucket(
  s3: S3Client,
  key: string,
  headers: Headers,
  signal: AbortSignal,
): Promise<boolean> {
  const upload = await beginUpload(s3, key, headers, signal).catch(async error => {
    signal.throwIfAborted()
    const mayLackParts =
      error instanceof Refusal
        ? WITHOUT_PARTS.includes(error.status)
        : error instanceof Problem && !error.retryable // the response was invalid, unlike a failed connection
    if (!mayLackParts) throw error
    await putAtOnce(s3, key, headers, bodyOf(Buffer.from('probe')), signal).catch(() => {
      throw error
    })
    await removeObject(s3, key, signal)
  })
  if (upload) await abortUpload(s3, upload, signal)
  return upload !== undefined
}
