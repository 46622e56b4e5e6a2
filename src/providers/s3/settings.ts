import { locationAt } from '../shared/location.ts'
import { encodeSegment, findDoubledName, withoutSlash } from '../shared/public-url.ts'
import { cleanRelative } from '../shared/remote-path.ts'
import { parseEndpoint, type S3Options } from './options.ts'
import { type AddressingStyle, hostOf, PRESETS, type Preset, recognizeHost } from './presets.ts'

/** Settings derived from the options and the preset. */
export type S3Settings = Exclude<ReturnType<typeof resolveSettings>, string>

/** @returns a sentence if the options are valid alone but not together */
export function resolveSettings(options: S3Options) {
  const { bucket, accountId, accessKeyId, secretAccessKey, sessionToken, path, webPath = path } = options
  const given = options.endpoint === undefined ? undefined : parseEndpoint(options.endpoint)
  const found = given && recognizeHost(given.host)
  const name = options.preset ?? found?.name ?? (given ? 'custom' : 'aws')
  const preset: Preset = PRESETS[name]
  const region = options.region ?? found?.region ?? preset.region
  const style = options.addressingStyle ?? preset.style
  const fault = given
    ? findEndpointFault(given, bucket, style)
    : findHostFault(name, preset, style, region, accountId)
  const problem = fault ?? findOptionFault(options, name, preset)
  if (problem !== undefined) return problem

  const known = region ?? 'us-east-1'
  const endpoint = given ? withoutSlash(given.href) : `https://${hostOf(preset, known, accountId)}`
  const isPublic = options.linkType === 'public'
  const publicUrl = options.urlPrefix ?? naturalUrl(bucket, preset, endpoint, style, known)
  if (isPublic && publicUrl === undefined)
    return `"urlPrefix" is required: ${name} has no public URL. Set it, or set "linkType" to "presigned".`
  return {
    options,
    /** URL of the bucket, to which object keys are appended, without a slash at the end. */
    bucketUrl: bucketUrl(endpoint, bucket, style),
    style,
    /** Region in signatures. */
    region: publicRegion(known),
    /** Undefined: credentials are looked up in the environment. */
    credentials: accessKeyId && secretAccessKey ? { accessKeyId, secretAccessKey, sessionToken } : undefined,
    /** Prefix of every object key: empty, or a folder with a slash at the end. The second one is for URLs. */
    keyPrefix: withSlash(path),
    urlFolder: withSlash(webPath),
    /** Public base URL of the objects. Undefined: URLs are presigned. */
    publicUrl: isPublic ? publicUrl : undefined,
    /** Headers of every object, with lower-case names. */
    headers: headersOf(options),
    /** Returns the part size for an object of `size` bytes, in bytes. */
    partSizeOf: (size: number) => Math.max(options.partSize, Math.ceil(size / (preset.maxParts ?? 10_000))),
    /** Canonical prefix of the objects. */
    location: locationOf(endpoint, style === 'cname' ? '' : bucket) + withSlash(path),
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

/** Some consoles show the endpoint with the bucket. */
function findEndpointFault({ href, hostname }: URL, bucket: string, style: AddressingStyle) {
  if (style === 'cname') return undefined
  if (hostname.startsWith(`${bucket}.`))
    return `"endpoint" already contains the bucket. Remove "${bucket}." from it, or set "addressingStyle" to "cname".`
  return findDoubledName(href, 'bucket', bucket)
}

/** Returns what is missing to make the endpoint of the preset. */
function findHostFault(
  name: string,
  { host }: Preset,
  style: AddressingStyle,
  region: string | undefined,
  accountId: string | undefined,
): string | undefined {
  if (host === undefined) return `"endpoint" is required for ${name}. Set it to the URL of your server.`
  if (style === 'cname')
    return '"endpoint" is required with "addressingStyle": "cname". Set it to the domain bound to the bucket.'
  if (region === undefined) return `"region" is required for ${name}, because it is part of the endpoint.`
  if (accountId === undefined && host.includes('{account}'))
    return `"accountId" is required for ${name}, because it is part of the endpoint. Set it, or set "endpoint".`
  const isLabel = (text = 'x') => /^[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?$/i.test(text)
  const wrong = isLabel(region) ? !isLabel(accountId) && 'accountId' : 'region'
  return wrong
    ? `"${wrong}" must contain only letters, digits and "-", because it is part of a hostname.`
    : undefined
}

function findOptionFault(options: S3Options, name: string, preset: Preset): string | undefined {
  if ((options.accessKeyId === undefined) !== (options.secretAccessKey === undefined))
    return 'Set both "accessKeyId" and "secretAccessKey", or neither to use the credentials of the environment.'
  if (options.sessionToken && !options.accessKeyId)
    return '"sessionToken" needs "accessKeyId" and "secretAccessKey".'
  const refused = preset.without?.find(option => options[option] !== undefined)
  if (refused) return `"${refused}" is not supported by ${name}. Remove it.`
  if (options.sseKmsKeyId && !options.serverSideEncryption?.startsWith('aws:kms'))
    return '"sseKmsKeyId" needs "serverSideEncryption" to be "aws:kms" or "aws:kms:dsse".'
  const inUrls = (['urlPrefix', 'urlSuffix', 'webPath'] as const).find(
    option => options[option] !== undefined,
  )
  if (options.linkType === 'presigned' && inUrls)
    return `"${inUrls}" can't be used with "linkType": "presigned", because it would break the signature. Remove it.`
  return undefined
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
export function bucketUrl(endpoint: string, bucket: string, style: AddressingStyle): string {
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

function withSlash(folder = ''): string {
  const clean = cleanRelative(folder)
  return clean === '' ? '' : `${clean}/`
}
