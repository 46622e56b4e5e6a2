import { randomUUID } from 'node:crypto'
import { hashOf } from '../../body.ts'
import { createHttpAgents, type HttpAgents } from '../../http/agents.ts'
import type { RawReply } from '../../http/exchange.ts'
import { Problem } from '../../problem.ts'
import type { ProviderDeps, Target, UploadObject } from '../contract.ts'
import { locationAt } from '../shared/location.ts'
import { joinUrl } from '../shared/public-url.ts'
import { bodyOf, createS3Client, findObject, notS3, type S3Client } from './client.ts'
import { explainS3 } from './explain.ts'
import { abortUpload, beginUpload, completeProbe, type MultipartUpload, putMultipart } from './multipart.ts'
import { isFromService, Refusal } from './refusal.ts'
import type { S3Settings } from './settings.ts'

const PROBE_PERMISSION = 's3:PutObject and s3:AbortMultipartUpload'

/**
 * Opens a bucket.
 *
 * @param type type of the provider, for messages
 * @param agents tests use it to redirect connections
 */
export function openS3(
  type: string,
  settings: S3Settings,
  { name, warn, outgoing, learn, caFile, insecureTls }: ProviderDeps,
  agents?: HttpAgents,
): Target {
  const label = `${type}/${name}`
  const connections = agents ?? createHttpAgents({ caFile, insecureTls, outgoing })
  const s3 = createS3Client(settings, connections, { outgoing, learn })
  const running = new Set<Promise<unknown>>()

  async function run<T>(permission: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted()
    const working = work()
    running.add(working)
    try {
      return await working
    } catch (error) {
      signal.throwIfAborted()
      throw explainS3(error, settings, permission)
    } finally {
      running.delete(working)
    }
  }

  return {
    location: locationOf(settings),
    traits: { atomic: true, linksExpire: settings.publicUrl === undefined },
    put: (object, signal) =>
      run('s3:PutObject', signal, async () => ({
        url: await storeObject(s3, settings, object, signal),
      })),
    async check(signal) {
      const key = `${settings.keyPrefix}upload-server-${randomUUID()}`
      const upload = await run(PROBE_PERMISSION, signal, () => probeBucket(s3, settings, key, signal))
      if (upload === undefined) {
        warn(
          `${label}: the service does not support multipart uploads, so files larger than ${settings.options.multipartThreshold} bytes can't be stored. Increase "multipartThreshold" to send larger files in one request.`,
        )
        return
      }
      await run('s3:AbortMultipartUpload', signal, () => discardUpload(s3, settings, upload, signal))
    },
    exists: (key, signal) =>
      run(
        's3:GetObject and s3:ListBucket',
        signal,
        async () => (await findObject(s3, settings.keyPrefix + key, signal)) !== undefined,
      ),
    remove: (key, signal) => run('s3:DeleteObject', signal, () => removeObject(s3, settings, key, signal)),
    sign: (key, method, mostS, signal) =>
      run('s3:GetObject', signal, () =>
        s3.presign(settings.keyPrefix + key, Math.min(settings.presignedForS, mostS), method),
      ),
    async close() {
      // Aborted uploads still remove their parts.
      await Promise.allSettled(running)
      connections.close()
    },
  }
}

/** Removes an object. A missing object counts as removed. */
async function removeObject(
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

/** Bucket names are unique at AWS, and internal hostnames of a vendor reach the same buckets. */
function locationOf({ endpoint, style, bucket, keyPrefix }: S3Settings): string {
  const address = new URL(endpoint)
  address.hostname = address.hostname
    .replace(/^s3[\w.-]*(?=\.amazonaws\.com)/, 's3')
    .replace(/^s3\.(?=oss-)/, '')
    .replace(/-internal(?=\.)/, '')
  return locationAt('s3', address.href, style === 'cname' ? '' : bucket) + keyPrefix
}

/** Stores an object and returns its URL. */
async function storeObject(
  s3: S3Client,
  settings: S3Settings,
  object: UploadObject,
  signal: AbortSignal,
): Promise<string> {
  const key = settings.keyPrefix + object.key
  const headers = headersOf(settings, object)
  if (object.size > settings.options.multipartThreshold) {
    await putMultipart(s3, key, headers, object, settings.partSizeOf(object.size), signal)
  } else {
    await putAtOnce(s3, key, headers, object, signal)
  }
  return urlOf(s3, settings, object)
}

function headersOf(settings: S3Settings, { contentType }: UploadObject): Record<string, string> {
  return { ...settings.headers, 'content-type': contentType }
}

async function urlOf(s3: S3Client, settings: S3Settings, { key }: UploadObject): Promise<string> {
  const { keyPrefix, urlFolder, publicUrl, presignedForS, options } = settings
  if (publicUrl === undefined) return (await s3.presign(keyPrefix + key, presignedForS)).url
  return joinUrl(publicUrl, urlFolder + key) + (options.urlSuffix ?? '')
}

/** Sends an object in one request. The length and the hash are known before the first byte. */
async function putAtOnce(
  s3: S3Client,
  key: string,
  headers: Readonly<Record<string, string>>,
  object: UploadObject,
  signal: AbortSignal,
): Promise<void> {
  const reply = await s3.send({ method: 'PUT', key, headers, body: object }, signal)
  if (!(await isStored(reply, object, signal))) throw notS3()
}

/**
 * Returns whether the response to a PUT is from an S3 service: it has a request ID, or is empty and has an ETag. An ETag that
 * looks like an MD5 must be that of the object. Encrypted objects and some services have other ETags.
 */
async function isStored(
  { headers, text }: RawReply,
  object: UploadObject,
  signal: AbortSignal,
): Promise<boolean> {
  if (isFromService(headers)) return true
  const etag = etagOf(headers)
  if (etag === undefined || text.trim() !== '') return false
  return !/^[\da-f]{32}$/.test(etag) || etag === (await hashOf(object, 'md5', signal))
}

const etagOf = ({ etag }: RawReply['headers']) => etag?.replaceAll('"', '').toLowerCase()

/** Statuses with which services without multipart uploads reject them. */
const WITHOUT_PARTS = new Set([400, 404, 405, 501])

/**
 * Starts a multipart upload. This needs the permissions of a PUT and validates the same headers. Unlike a small object, it leaves
 * nothing behind when it is aborted, even in a bucket with versioning or without the permission to delete.
 * If the service does not support multipart uploads, a small object is stored and removed.
 *
 * @param key including the folder of the destination
 * @returns undefined if the service does not support multipart uploads
 */
async function probeBucket(
  s3: S3Client,
  settings: S3Settings,
  key: string,
  signal: AbortSignal,
): Promise<MultipartUpload | undefined> {
  const headers = { ...settings.headers, 'content-type': 'text/plain' }
  try {
    return await beginUpload(s3, key, headers, signal)
  } catch (error) {
    signal.throwIfAborted()
    const mayLackParts = error instanceof Refusal ? WITHOUT_PARTS.has(error.facts.status) : isNoService(error)
    if (!mayLackParts || !(await takesSmall(s3, key, headers, signal))) throw error
    await removeObject(s3, settings, key.slice(settings.keyPrefix.length), signal)
    return undefined
  }
}

/** Aborts the upload of a check. If the service rejects that, completes it and removes the object, as far as possible. */
async function discardUpload(
  s3: S3Client,
  settings: S3Settings,
  upload: MultipartUpload,
  signal: AbortSignal,
): Promise<void> {
  try {
    await abortUpload(s3, upload, signal)
  } catch (error) {
    try {
      await completeProbe(s3, upload, signal)
      await removeObject(s3, settings, upload.key.slice(settings.keyPrefix.length), signal)
    } catch {
      // The first failure is the one to report.
    }
    throw error
  }
}

/** Returns whether the response was invalid, unlike a failed connection. */
function isNoService(error: unknown): boolean {
  return error instanceof Problem && !error.retryable
}

async function takesSmall(
  s3: S3Client,
  key: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<boolean> {
  const object: UploadObject = { ...bodyOf(Buffer.from('probe')), key, contentType: 'text/plain' }
  return putAtOnce(s3, key, headers, object, signal).then(
    () => true,
    () => false,
  )
}
