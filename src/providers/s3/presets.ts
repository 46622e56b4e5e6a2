import { keysOf } from '../../members.ts'
/** Where a URL has the bucket: in the hostname (`BUCKET.HOST/KEY`), in the path (`HOST/BUCKET/KEY`), or nowhere, on a domain of the bucket. */
export type AddressingStyle = 'virtual' | 'path' | 'cname'

/** Settings for all buckets of a vendor. */
export interface Preset {
  /** Hostname of the API, with placeholders for options. Undefined: each installation has another hostname. */
  readonly host?: string
  readonly style: 'virtual' | 'path'
  /** Default region for signatures. Undefined: the region is part of the hostname and must be set. */
  readonly region?: string
  /** Hostname of public URLs, or `api` for that of the API. Undefined: objects are public only through a bound domain. */
  readonly publicHost?: 'api' | (string & {})
  /** Options that the vendor rejects or ignores. */
  readonly without?: readonly ('acl' | 'serverSideEncryption' | 'sessionToken')[]
  /** Maximum number of parts of one upload. Default: 10000. */
  readonly maxParts?: number
}

/** Values of the vendors' documentation, compared with rclone's definitions. */
export const PRESETS = {
  aws: { host: 's3.{region}.amazonaws.com', style: 'virtual', publicHost: 'api' },
  aliyun: {
    host: 's3.oss-{region}.aliyuncs.com',
    style: 'virtual',
    publicHost: '{bucket}.oss-{region}.aliyuncs.com',
  },
  tcyun: { host: 'cos.{region}.myqcloud.com', style: 'virtual', publicHost: 'api' },
  qiniu: { host: 's3.{region}.qiniucs.com', style: 'path' },
  'upyun-s3': {
    host: 's3.api.upyun.com',
    style: 'path',
    region: 'us-east-1',
    without: ['acl', 'serverSideEncryption', 'sessionToken'],
  },
  'huawei-obs': { host: 'obs.{region}.myhuaweicloud.com', style: 'virtual', publicHost: 'api' },
  'volcengine-tos': {
    host: 'tos-s3-{region}.volces.com',
    style: 'virtual',
    publicHost: '{bucket}.tos-{region}.volces.com',
  },
  // https://developers.cloudflare.com/r2/api/s3/api/
  'cloudflare-r2': {
    host: '{account}.r2.cloudflarestorage.com',
    style: 'path',
    region: 'auto',
    without: ['acl', 'serverSideEncryption'],
  },
  'backblaze-b2': { host: 's3.{region}.backblazeb2.com', style: 'virtual', publicHost: 'api' },
  minio: { style: 'path', region: 'us-east-1', publicHost: 'api' },
  wasabi: { host: 's3.{region}.wasabisys.com', style: 'virtual', publicHost: 'api' },
  'do-spaces': { host: '{region}.digitaloceanspaces.com', style: 'virtual', publicHost: 'api' },
  gcs: { host: 'storage.googleapis.com', style: 'path', region: 'auto', publicHost: 'api' },
  scaleway: { host: 's3.{region}.scw.cloud', style: 'virtual', publicHost: 'api', maxParts: 1000 },
  hetzner: { host: '{region}.your-objectstorage.com', style: 'virtual', publicHost: 'api' },
  // https://www.tigrisdata.com/docs/llms-full.txt
  tigris: { host: 't3.storage.dev', style: 'virtual', region: 'auto' },
  linode: { host: '{region}.linodeobjects.com', style: 'virtual', publicHost: 'api' },
  storj: { host: 'gateway.storjshare.io', style: 'path', region: 'us-east-1', without: ['acl'] },
  'idrive-e2': { style: 'path', region: 'us-east-1', publicHost: 'api' },
  // https://cloud.baidu.com/doc/BOS/s/xjwvyq9l4
  'baidu-bos': {
    host: 's3.{region}.bcebos.com',
    style: 'virtual',
    publicHost: '{bucket}.{region}.bcebos.com',
  },
  // https://docs.oracle.com/iaas/Content/Object/Tasks/s3compatibleapi.htm
  oracle: {
    host: '{account}.compat.objectstorage.{region}.oraclecloud.com',
    style: 'path',
    without: ['acl'],
  },
  rustfs: { style: 'path', region: 'us-east-1', publicHost: 'api' },
  seaweedfs: { style: 'path', region: 'us-east-1', publicHost: 'api' },
  garage: { style: 'path', region: 'garage' },
  custom: { style: 'path', region: 'us-east-1' },
} as const satisfies Record<string, Preset>

export type PresetName = keyof typeof PRESETS

export const PRESET_NAMES = keysOf(PRESETS)

/** A vendor that was detected by the hostname, with the region in it. */
export interface Recognized {
  readonly name: PresetName
  readonly region: string | undefined
}

/** Detects the vendor by the hostname of its API: `s3.eu-central-1.amazonaws.com` is `aws` in `eu-central-1`. */
export function recognizeHost(host: string): Recognized | undefined {
  for (const name of PRESET_NAMES) {
    const pattern = patternOf(PRESETS[name])
    const match = pattern?.exec(host.toLowerCase())
    if (match) return { name, region: match.groups?.['region'] }
  }
  return undefined
}

/** Makes a pattern, which also matches jurisdictions of R2 (`ACCOUNT.eu.r2…`), AWS in China and Alibaba's hostnames without `s3.`. */
function patternOf(preset: Preset): RegExp | undefined {
  if (preset.host === undefined) return undefined
  const source = preset.host
    .replaceAll('.', '\\.')
    .replace('{account}', '[^.]+(?:\\.[a-z]+)?')
    .replace('{region}', '(?<region>[a-z0-9-]+)')
    .replace(/^s3\\\.oss-/, '(?:s3\\.)?oss-')
    .replace(/amazonaws\\\.com$/, 'amazonaws\\.com(?:\\.cn)?')
  return new RegExp(`^${source}$`)
}

/** Returns the hostname of the API with the placeholders replaced. */
export function hostOf(preset: Preset, region: string, account = ''): string | undefined {
  const host = preset.host?.replace('{region}', region).replace('{account}', account)
  return host?.endsWith('.amazonaws.com') && region.startsWith('cn-') ? `${host}.cn` : host
}
