import { defectOf } from '../../payload/object-key.ts'
import type { PicGoOptions } from '../shared/picgo-options.ts'
import { parseEndpoint } from './options.ts'
import { PRESETS, type Preset, recognizeHost } from './presets.ts'

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
export function picgo(old: PicGoOptions): Record<string, unknown> {
  const endpoint = parseEndpoint(old.text('endpoint') ?? '')
  const preset: Preset =
    PRESETS[(endpoint && recognizeHost(endpoint.host)?.name) ?? (endpoint ? 'custom' : 'aws')]
  const [region, given] = [old.text('region'), old.text('acl')]
  const acl = given === 'auto' ? undefined : given
  const isRefused = acl !== undefined && preset.without?.includes('acl')
  if (old.all['rejectUnauthorized'] !== undefined && !old.flag('rejectUnauthorized'))
    old.note(
      '"rejectUnauthorized" was not imported: certificates are verified. See "caFile" and "insecureTls".',
    )
  if (isRefused) old.note('"acl" was not imported: the service does not support ACLs.')
  return {
    endpoint: old.text('endpoint'),
    // "auto" makes the SDK of PicList guess the region. No vendor has it in a hostname.
    region: region === 'auto' && preset.host?.includes('{region}') ? undefined : region,
    bucket: old.text('bucketName'),
    accessKeyId: old.text('accessKeyID'),
    secretAccessKey: old.text('secretAccessKey'),
    addressingStyle: old.flag('pathStyleAccess') ? 'path' : 'virtual',
    proxy: old.proxy(),
    acl: isRefused ? undefined : acl,
    keyTemplate: readTemplate(old),
    ...readUrls(old, preset, endpoint),
  }
}

/** Without `urlPrefix`, PicList returns plain URLs of the API if the ACL is public, and signed URLs otherwise. */
function readUrls(old: PicGoOptions, preset: Preset, endpoint: URL | undefined): Record<string, unknown> {
  const urlPrefix = old.url('urlPrefix')
  const urlSuffix = old.suffix('options')?.replace(/^(?![?!#-])/, '?')
  const isPath = old.flag('pathStyleAccess')
  const bucket = old.text('bucketName') ?? ''
  if (urlPrefix !== undefined) {
    // Only PicList has this option and appends the bucket. The plugin of PicGo does not append it.
    const isAppended = isPath && Object.hasOwn(old.all, 'disableBucketPrefixToURL')
    const withBucket = isAppended && !old.flag('disableBucketPrefixToURL')
    return { urlPrefix: withBucket ? `${urlPrefix}/${encodeURIComponent(bucket)}` : urlPrefix, urlSuffix }
  }
  const isPublic = old.text('acl')?.startsWith('public-read')
  if (isPublic && preset.publicHost !== undefined) return { urlSuffix }
  if (isPublic && endpoint) {
    const plain = endpoint.href.replace(/(?<!\/)\/+$/, '')
    return { urlPrefix: isPath ? `${plain}/${bucket}` : plain.replace('://', `://${bucket}.`), urlSuffix }
  }
  old.note(
    'URLs are signed and expire after 7 days, because there is neither "urlPrefix" nor a public "acl".',
  )
  if (urlSuffix) old.note('"options" was not imported: it would break the signature of the URLs.')
  return { linkType: 'presigned' }
}

/** Translates a template. In newer versions of PicList it may be a folder, which does not end with a file name. */
function readTemplate(old: PicGoOptions): string {
  const translated = (old.text('uploadPath') ?? '')
    .replace(/^\/+/, '')
    .replace(/\{(\w+)\}/g, (whole, name: string) => PLACEHOLDERS[name] ?? whole)
    // {extname} includes the dot here.
    .replaceAll('.{extname}', '{extname}')
  const last = translated.slice(translated.lastIndexOf('/') + 1)
  return NAMING.test(last) && defectOf(translated) === undefined ? translated : old.template(translated)
}
