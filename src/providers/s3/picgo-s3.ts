import { readProxy, type Translated } from '../shared/picgo-options.ts'
import { toUrlSuffix } from '../shared/public-url.ts'
import { parseEndpoint } from './options.ts'
import { createReader, isTemplate, toKeyTemplate, toUrlPrefix } from './picgo.ts'
import { PRESETS, type Preset, recognizeHost } from './presets.ts'

type ReadOption = (name: string) => string | undefined

/** Placeholders of the S3 plugins that have another name here. */
const PLACEHOLDERS: Readonly<Record<string, string>> = {
  year: '{Y}',
  month: '{m}',
  day: '{d}',
  fullName: '{filename}{extname}',
  fileName: '{filename}',
  extName: '{extname}',
  md5B64: '{md5}',
  md5B64Short: '{md5-8}',
  timestamp: '{timestampS}',
  timestampMS: '{timestamp}',
}

/** Matches placeholders that make file names different. */
const NAMING = /\{(?:filename|md5|sha1|sha256|uuid|ulid|timestamp|str-)/

/** Translates options of PicList's `aws-s3-plist` and of PicGo's plugin `s3` (`aws-s3`). */
export function fromPicGo(options: Record<string, unknown>): Translated {
  const notes: string[] = []
  const read = createReader(options)
  const endpoint = read('endpoint')
  const host = endpoint && parseEndpoint(endpoint)?.host
  const preset: Preset = PRESETS[(host && recognizeHost(host)?.name) || (host ? 'custom' : 'aws')]
  const region = read('region')
  if (options['rejectUnauthorized'] === false) {
    notes.push(
      '"rejectUnauthorized" was not imported: certificates are verified. See "caFile" and "insecureTls".',
    )
  }
  const ours = {
    endpoint,
    // "auto" makes the SDK of PicList guess the region. No vendor has it in a hostname.
    region: region === 'auto' && preset.host?.includes('{region}') ? undefined : region,
    bucket: read('bucketName'),
    accessKeyId: read('accessKeyID'),
    secretAccessKey: read('secretAccessKey'),
    addressingStyle: isTrue(options['pathStyleAccess']) ? 'path' : 'virtual',
    proxy: readProxy(options['proxy'], notes),
    acl: readAcl(read('acl'), preset, notes),
    keyTemplate: readTemplate(read('uploadPath'), notes),
    ...readUrls(options, read, preset, notes),
  }
  return {
    options: Object.fromEntries(Object.entries(ours).filter(([, value]) => value !== undefined)),
    notes,
  }
}

function readAcl(acl: string | undefined, preset: Preset, notes: string[]): string | undefined {
  if (acl === undefined || acl === 'auto') return undefined
  if (!preset.without?.includes('acl')) return acl
  notes.push('"acl" was not imported: the service does not support ACLs.')
  return undefined
}

/** Without `urlPrefix`, PicList returns plain URLs of the API if the ACL is public, and signed URLs otherwise. */
function readUrls(
  options: Record<string, unknown>,
  read: ReadOption,
  preset: Preset,
  notes: string[],
): Record<string, unknown> {
  const urlPrefix = toUrlPrefix(read('urlPrefix'), 'urlPrefix', notes)
  const urlSuffix = toUrlSuffix(read('options'))?.replace(/^(?![?!#-])/, '?')
  const isPath = isTrue(options['pathStyleAccess'])
  const bucket = read('bucketName') ?? ''
  if (urlPrefix !== undefined) {
    // Only PicList has this option and appends the bucket. The plugin of PicGo does not append it.
    const isPicList = Object.hasOwn(options, 'disableBucketPrefixToURL')
    const withBucket = isPicList && isPath && !isTrue(options['disableBucketPrefixToURL'])
    return { urlPrefix: withBucket ? `${urlPrefix}/${encodeURIComponent(bucket)}` : urlPrefix, urlSuffix }
  }
  const isPublic = read('acl')?.startsWith('public-read')
  if (isPublic && preset.publicHost !== undefined) return { urlSuffix }
  const endpoint = parseEndpoint(read('endpoint') ?? '')?.href.replace(/(?<!\/)\/+$/, '')
  if (isPublic && endpoint) {
    const host = isPath ? `${endpoint}/${bucket}` : endpoint.replace('://', `://${bucket}.`)
    return { urlPrefix: host, urlSuffix }
  }
  notes.push(
    'URLs are signed and expire after 7 days, because there is neither "urlPrefix" nor a public "acl".',
  )
  if (urlSuffix) notes.push('"options" was not imported: it would break the signature of the URLs.')
  return { linkType: 'presigned' }
}

/** Translates a template. In newer versions of PicList it may be a folder, which does not end with a file name. */
function readTemplate(uploadPath: string | undefined, notes: string[]): string {
  const translated = (uploadPath ?? '')
    .replace(/^\/+/, '')
    .replace(/\{(\w+)\}/g, (whole, name: string) => PLACEHOLDERS[name] ?? whole)
    // {extname} includes the dot here.
    .replaceAll('.{extname}', '{extname}')
  const last = translated.slice(translated.lastIndexOf('/') + 1)
  if (NAMING.test(last) && isTemplate(translated)) return translated
  return toKeyTemplate(translated, notes)
}

/** Reads a boolean, which the desktop application may write as text. */
function isTrue(value: unknown): boolean {
  return value === true || (typeof value === 'string' && value.toLowerCase() === 'true')
}
