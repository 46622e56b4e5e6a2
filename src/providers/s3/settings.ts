import { locationAt } from '../shared/location.ts'
import { encodeSegment, findDoubledName, withoutSlash } from '../shared/public-url.ts'
import { cleanRelative } from '../shared/remote-path.ts'
import { parseEndpoint, type S3Options } from './options.ts'
import { type AddressingStyle, hostOf, PRESETS, type Preset, recognizeHost } from './presets.ts'
import type { S3Credentials } from './sign.ts'

/** Settings computed from all options. */
export interface S3Settings {
  readonly bucket: string
  /** URL of the API, or of the bucket with the style `cname`, without a slash at the end. */
  readonly endpoint: string
  /** URL of the bucket, to which object keys are appended, without a slash at the end. */
  readonly bucketUrl: string
  /** Region in signatures. */
  readonly region: string
  readonly style: AddressingStyle
  /** Undefined: credentials are looked up in the environment. */
  readonly credentials: S3Credentials | undefined
  /** Prefix of every object key: empty, or a folder with a slash at the end. */
  readonly keyPrefix: string
  /** The same prefix for object keys in URLs. */
  readonly urlFolder: string
  /** Public base URL of the objects. Undefined: URLs are presigned. */
  readonly publicUrl: string | undefined
  /** Headers of every object, with lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** Returns the part size for an object of `size` bytes, in bytes. */
  readonly partSizeOf: (size: number) => number
  /** Lifetime of presigned URLs, in seconds. */
  readonly presignedForS: number
  /** Canonical prefix of the objects. */
  readonly location: string
  readonly options: S3Options
}

/** Returns a sentence about options that are valid alone but not together, or undefined. */
export function findProblem(options: S3Options): string | undefined {
  const settings = resolveSettings(options)
  return typeof settings === 'string' ? settings : undefined
}

/** @throws Error with the sentence of `findProblem` */
export function requireSettings(options: S3Options): S3Settings {
  const settings = resolveSettings(options)
  if (typeof settings === 'string') throw new Error(settings)
  return settings
}

function resolveSettings(options: S3Options): S3Settings | string {
  const given = options.endpoint === undefined ? undefined : parseEndpoint(options.endpoint)
  const found = given && recognizeHost(given.host)
  const name = options.preset ?? found?.name ?? (given ? 'custom' : 'aws')
  const preset: Preset = PRESETS[name]
  const region = options.region ?? found?.region ?? preset.region
  const style = options.addressingStyle ?? preset.style
  const problem = findFault(options, name, preset, given, region, style)
  if (problem !== undefined) return problem

  const known = region ?? 'us-east-1'
  const endpoint = given ? withoutSlash(given.href) : `https://${hostOf(preset, known, options.accountId)}`
  const isPublic = options.linkType === 'public'
  const publicUrl = options.urlPrefix ?? naturalUrl(options.bucket, preset, endpoint, style, known)
  if (isPublic && publicUrl === undefined)
    return `"urlPrefix" is required: ${name} has no public URL. Set it, or set "linkType" to "presigned".`
  const { bucket, accessKeyId, secretAccessKey, sessionToken, path, webPath = path } = options
  return {
    bucket,
    endpoint,
    bucketUrl: bucketUrl(endpoint, bucket, style),
    region: publicRegion(known),
    style,
    credentials: accessKeyId && secretAccessKey ? { accessKeyId, secretAccessKey, sessionToken } : undefined,
    keyPrefix: withSlash(path),
    urlFolder: withSlash(webPath),
    publicUrl: isPublic ? publicUrl : undefined,
    headers: headersOf(options),
    partSizeOf: size => Math.max(options.partSize, Math.ceil(size / (preset.maxParts ?? 10_000))),
    presignedForS: Math.floor(options.presignedFor / 1000),
    location: locationOf(endpoint, style === 'cname' ? '' : bucket) + withSlash(path),
    options,
  }
}

function headersOf(options: S3Options): Record<string, string> {
  const { cacheControl, contentDisposition, acl, storageClass, serverSideEncryption, sseKmsKeyId } = options
  const visibility = options.linkType === 'public' ? 'public' : 'private'
  return {
    'cache-control': cacheControl ?? `${visibility}, max-age=86400`,
    'content-disposition': contentDisposition,
    ...(acl && { 'x-amz-acl': acl }),
    ...(storageClass && { 'x-amz-storage-class': storageClass }),
    ...(serverSideEncryption && { 'x-amz-server-side-encryption': serverSideEncryption }),
    ...(sseKmsKeyId && { 'x-amz-server-side-encryption-aws-kms-key-id': sseKmsKeyId }),
  }
}

/** @returns a sentence about the first rule that the options break */
function findFault(
  options: S3Options,
  name: string,
  preset: Preset,
  given: URL | undefined,
  region: string | undefined,
  style: AddressingStyle,
): string | undefined {
  const { bucket, accountId, accessKeyId, secretAccessKey, sessionToken, sseKmsKeyId } = options
  const fits = (text = 'x') => /^[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?$/i.test(text)
  const rules: readonly [isBroken: unknown, sentence: string][] = [
    [
      !given && preset.host === undefined,
      `"endpoint" is required for ${name}. Set it to the URL of your server.`,
    ],
    [
      !given && style === 'cname',
      '"endpoint" is required with "addressingStyle": "cname". Set it to the domain bound to the bucket.',
    ],
    [!given && region === undefined, `"region" is required for ${name}, because it is part of the endpoint.`],
    [
      !given && accountId === undefined && preset.host?.includes('{account}'),
      `"accountId" is required for ${name}, because it is part of the endpoint. Set it, or set "endpoint".`,
    ],
    ...Object.entries({ region, accountId }).map(([option, value]): [boolean, string] => [
      !given && !fits(value),
      `"${option}" must contain only letters, digits and "-", because it is part of a hostname.`,
    ]),
    [
      (accessKeyId === undefined) !== (secretAccessKey === undefined),
      'Set both "accessKeyId" and "secretAccessKey", or neither to use the credentials of the environment.',
    ],
    [sessionToken && !accessKeyId, '"sessionToken" needs "accessKeyId" and "secretAccessKey".'],
    ...(preset.without ?? []).map((option): [boolean, string] => [
      options[option] !== undefined,
      `"${option}" is not supported by ${name}. Remove it.`,
    ]),
    [
      sseKmsKeyId && !options.serverSideEncryption?.startsWith('aws:kms'),
      '"sseKmsKeyId" needs "serverSideEncryption" to be "aws:kms" or "aws:kms:dsse".',
    ],
    ...(['urlPrefix', 'urlSuffix', 'webPath'] as const).map((option): [boolean, string] => [
      options.linkType === 'presigned' && options[option] !== undefined,
      `"${option}" can't be used with "linkType": "presigned", because it would break the signature. Remove it.`,
    ]),
    // Some consoles show the endpoint with the bucket.
    [
      style !== 'cname' && given?.hostname.startsWith(`${bucket}.`),
      `"endpoint" already contains the bucket. Remove "${bucket}." from it, or set "addressingStyle" to "cname".`,
    ],
  ]
  const fault = rules.find(([isBroken]) => isBroken)?.[1]
  return fault ?? (given && style !== 'cname' ? findDoubledName(given.href, 'bucket', bucket) : undefined)
}

function naturalUrl(
  bucket: string,
  { publicHost }: Preset,
  endpoint: string,
  style: AddressingStyle,
  region: string,
): string | undefined {
  if (style === 'cname' || publicHost === 'api') return bucketUrl(endpoint, bucket, style)
  return (
    publicHost &&
    `https://${publicHost.replace('{bucket}', bucket).replace('{region}', publicRegion(region))}`
  )
}

/**
 * Returns the URL of the bucket. It has the bucket in the path if the hostname can't have it: IP addresses have no
 * subdomains, and a wildcard certificate covers one label.
 */
function bucketUrl(endpoint: string, bucket: string, style: AddressingStyle): string {
  if (style === 'cname') return endpoint
  const isNumber = /^[\d.]+$|^\[/.test(new URL(endpoint).hostname)
  const isLabel = /^[a-z\d][a-z\d-]{1,61}[a-z\d]$/.test(bucket)
  if (style === 'path' || isNumber || !isLabel) return `${endpoint}/${encodeSegment(bucket)}`
  return endpoint.replace('://', `://${bucket}.`)
}

/** Bucket names are unique at AWS, and internal hostnames of a vendor reach the same buckets. */
function locationOf(endpoint: string, bucket: string): string {
  const address = new URL(endpoint)
  address.hostname = address.hostname
    .replace(/^s3[\w.-]*(?=\.amazonaws\.com)/, 's3')
    .replace(/^s3\.(?=oss-)/, '')
    .replace(/-internal(?=\.)/, '')
  return locationAt('s3', address.href, bucket)
}

/** Internal hostnames such as `oss-cn-hangzhou-internal` are in the region `cn-hangzhou`. */
function publicRegion(region: string): string {
  return region.replace(/-internal$/, '')
}

function withSlash(folder: string | undefined): string {
  const clean = cleanRelative(folder ?? '')
  return clean === '' ? '' : `${clean}/`
}
