import { randomUUID } from 'node:crypto'
import * as z from '../../packages/zod.ts'
import { type Context, defineProvider, type Target } from '../contract.ts'
import { joinUrl } from '../shared/public-url.ts'
import { createS3Client, type S3Access } from './client.ts'
import { credentialsOfEnvironment } from './credentials.ts'
import { beginUpload, putMultipart } from './multipart.ts'
import { type S3Options, s3Options } from './options.ts'
import { picgo } from './picgo.ts'
import { resolveSettings } from './settings.ts'

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
  open: openS3,
})

/** Returns a sentence about options that are valid alone but not together, or undefined. */
export function validate(options: S3Options): string | undefined {
  const settings = resolveSettings(options)
  return typeof settings === 'string' ? settings : undefined
}

/**
 * Opens a bucket.
 *
 * @param getAccess default: with the credentials of the options or of the environment
 */
export function openS3(
  options: S3Options,
  { http, learn }: Pick<Context, 'http' | 'learn'>,
  getAccess?: (signal?: AbortSignal) => Promise<S3Access>,
): Target {
  const settings = resolveSettings(options)
  if (typeof settings === 'string') throw new Error(settings)
  const { bucketUrl, region, credentials, keyPrefix, urlFolder, publicUrl } = settings
  const find = credentials ? async () => credentials : credentialsOfEnvironment(region, { http, learn })
  const accessBucket = getAccess ?? (async () => ({ bucketUrl, credentials: await find() }))
  const s3 = createS3Client(settings, http, accessBucket)
  const presignedForS = Math.floor(options.presignedFor / 1000)
  return {
    location: settings.location,
    traits: { atomic: true, linksExpire: publicUrl === undefined },
    async put(object, signal) {
      const key = keyPrefix + object.key
      const headers = { ...settings.headers, 'content-type': object.contentType }
      if (object.size <= options.multipartThreshold) await s3.put(key, headers, object, signal)
      else await putMultipart(s3, key, headers, object, settings.partSizeOf(object.size), signal)
      if (publicUrl === undefined) return { url: (await s3.presign(key, presignedForS)).url }
      return { url: joinUrl(publicUrl, urlFolder + object.key) + (options.urlSuffix ?? '') }
    },
    // An upload that is aborted needs the permissions of a PUT, and its headers are validated. Unlike a small object, it
    // leaves nothing behind, even in a bucket with versioning or without the permission to delete.
    async check(signal) {
      const key = `${keyPrefix}upload-server-${randomUUID()}`
      const upload = await beginUpload(s3, key, { ...settings.headers, 'content-type': 'text/plain' }, signal)
      await upload.abort(signal)
    },
    exists: (key, signal) => s3.exists(keyPrefix + key, signal),
    remove: (key, signal) => s3.remove(keyPrefix + key, signal),
    sign: (key, method, mostS) => s3.presign(keyPrefix + key, Math.min(presignedForS, mostS), method),
  }
}
