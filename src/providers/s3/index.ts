import { randomUUID } from 'node:crypto'
import { hashOf } from '../../body.ts'
import { HttpRefusal } from '../../http/client.ts'
import { showSize } from '../../options.ts'
import * as z from '../../packages/zod.ts'
import { Problem } from '../../problem.ts'
import { type Context, defineProvider, type Target } from '../contract.ts'
import { joinUrl } from '../shared/public-url.ts'
import { bodyOf, createS3Client, findObject, type S3Access, type S3Body, type S3Client } from './client.ts'
import { credentialsOfEnvironment } from './credentials.ts'
import { abortUpload, beginUpload, putMultipart } from './multipart.ts'
import { type S3Options, s3Options } from './options.ts'
import { picgo } from './picgo.ts'
import { codeOf, isFromService, notS3 } from './refusal.ts'
import { resolveSettings, type S3Settings } from './settings.ts'

/** Amazon S3 and compatible services. */
export const s3 = defineProvider({
  type: 's3',
  about: {
    family: 'bucket',
    what: 'S3 and compatible services, with presets for AWS, R2, MinIO, B2, Wasabi, OBS, TOS, GCS, …',
    testedAgainst: 'Ceph radosgw; hostnames and signatures of the presets against recorded fixtures',
    signs: true,
    choices: [
      {
        label: 'Cloudflare R2',
        options: { preset: 'cloudflare-r2' },
        asks: ['accountId', 'bucket', 'accessKeyId', 'secretAccessKey', 'urlPrefix'],
        where: 'R2 → Manage API tokens, with "Object Read & Write".',
      },
      {
        label: 'Amazon S3',
        options: { preset: 'aws' },
        asks: ['bucket', 'region', 'accessKeyId?', 'secretAccessKey?', 'urlPrefix?'],
        where: 'IAM → Users → Security credentials → Create access key.',
      },
      {
        label: 'Another S3 service',
        hint: 'MinIO, RustFS, Backblaze B2, Wasabi, DigitalOcean, Tigris, OBS, TOS, BOS, GCS, Ceph…',
        asks: ['endpoint', 'bucket', 'region?', 'accessKeyId', 'secretAccessKey', 'urlPrefix?'],
      },
    ],
  },
  config: z.object(s3Options),
  redirected: { linkType: 'presigned' },
  validate,
  picgo,
  open: (options, context) => openS3('s3', options, context),
})

/** Returns a sentence about options that are valid alone but not together, or undefined. */
export function validate(options: S3Options): string | undefined {
  const settings = resolveSettings(options)
  return typeof settings === 'string' ? settings : undefined
}

type Headers = Readonly<Record<string, string>>

/**
 * Opens a bucket.
 *
 * @param type type of the provider, for messages
 * @param getAccess default: with the credentials of the options or of the environment
 */
export function openS3(
  type: string,
  options: S3Options,
  context: Pick<Context, 'name' | 'warn' | 'http' | 'learn'>,
  getAccess?: (signal?: AbortSignal) => Promise<S3Access>,
): Target {
  const settings = resolveSettings(options)
  if (typeof settings === 'string') throw new Error(settings)
  const s3 = createS3Client(settings, context.http, getAccess ?? accessBy(settings, context))
  const { keyPrefix, urlFolder, publicUrl } = settings
  const presignedForS = Math.floor(options.presignedFor / 1000)
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
    check: signal => checkBucket(s3, `${type}/${context.name}`, settings, context, signal),
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
  const reply = await s3.send({ method: 'DELETE', key }, signal).catch((error: unknown) => {
    if (error instanceof HttpRefusal && codeOf(error.reply) === 'NoSuchKey') return error.reply
    throw error
  })
  if (!isFromService(reply) && (await findObject(s3, key, signal))) throw notS3()
}

/**
 * Sends an object in one request. The length and the hash are known before the first byte.
 *
 * A response is from an S3 service if it has a request ID, or is empty and has an ETag. An ETag that looks like an MD5 must be
 * that of the object. Encrypted objects and some services have other ETags.
 */
async function putAtOnce(
  s3: S3Client,
  key: string,
  headers: Headers,
  body: S3Body,
  signal: AbortSignal,
): Promise<void> {
  const reply = await s3.send({ method: 'PUT', key, headers, body }, signal)
  if (isFromService(reply)) return
  const etag = reply.headers['etag']?.replaceAll('"', '').toLowerCase()
  if (etag === undefined || reply.text.trim() !== '') throw notS3()
  if (/^[\da-f]{32}$/.test(etag) && etag !== (await hashOf(body, 'md5', signal))) throw notS3()
}

/**
 * Starts a multipart upload and aborts it. This needs the permissions of a PUT and validates the same headers. Unlike a small
 * object, it leaves nothing behind, even in a bucket with versioning or without the permission to delete.
 * If the service does not support multipart uploads, a small object is stored and removed.
 */
async function checkBucket(
  s3: S3Client,
  id: string,
  { keyPrefix, headers, options }: S3Settings,
  { warn }: Pick<Context, 'warn'>,
  signal: AbortSignal,
): Promise<void> {
  const key = `${keyPrefix}upload-server-${randomUUID()}`
  const probe = { ...headers, 'content-type': 'text/plain' }
  const upload = await beginUpload(s3, key, probe, signal).catch(async error => {
    signal.throwIfAborted()
    if (!(error instanceof Problem) || error.retryable) throw error
    await putAtOnce(s3, key, probe, bodyOf(Buffer.from('probe')), signal).catch(() => {
      throw error
    })
    await removeObject(s3, key, signal)
    const most = showSize(options.multipartThreshold)
    // Only the type "s3" has the option: the vendors of the others support multipart uploads.
    const advice = id.startsWith('s3/')
      ? ' Increase "multipartThreshold" to send larger files in one request.'
      : ''
    warn(
      `${id}: the service does not support multipart uploads, so files larger than ${most} can't be stored.${advice}`,
    )
  })
  if (upload) await abortUpload(s3, upload, signal)
}
