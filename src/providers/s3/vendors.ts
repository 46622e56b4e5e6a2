import * as z from '../../packages/zod.ts'
import { defineProvider, type Provider } from '../contract.ts'
import type { PicGoOptions } from '../shared/picgo-options.ts'
import { openS3, validate } from './index.ts'
import { bucketOptions, type S3Options, STANDARD_PARTS } from './options.ts'
import { PRESETS, type Preset, type PresetName } from './presets.ts'

/** Alibaba Cloud OSS. */
export const aliyun = defineVendor(
  'aliyun',
  'Aliyun OSS',
  '阿里云',
  'the RAM console: a user with an AccessKey.',
  old => ({
    accessKeyId: old.text('accessKeyId'),
    secretAccessKey: old.text('accessKeySecret'),
    region: old.text('area')?.replace(/^oss-/, ''),
    urlPrefix: old.url('customUrl'),
    urlSuffix: old.suffix('options'),
  }),
)

/** Regions of Qiniu with another name in PicGo. */
const QINIU_REGIONS: Readonly<Record<string, string>> = {
  z0: 'cn-east-1',
  z1: 'cn-north-1',
  z2: 'cn-south-1',
  na0: 'us-north-1',
  as0: 'ap-southeast-1',
}

/** Qiniu Kodo. */
export const qiniu = defineVendor(
  'qiniu',
  'Qiniu Kodo',
  '七牛云',
  'the portal, 个人中心 → 密钥管理.',
  old => ({
    accessKeyId: old.text('accessKey'),
    secretAccessKey: old.text('secretKey'),
    region: renamed(QINIU_REGIONS, old.text('area')),
    urlPrefix: old.url('url'),
    urlSuffix: old.suffix('options'),
  }),
)

/** Names of Tencent's regions in version 4 of the API. */
const TENCENT_REGIONS: Readonly<Record<string, string>> = {
  tj: 'ap-beijing-1',
  bj: 'ap-beijing',
  sh: 'ap-shanghai',
  gz: 'ap-guangzhou',
  cd: 'ap-chengdu',
  hk: 'ap-hongkong',
  sgp: 'ap-singapore',
  ca: 'na-toronto',
  ger: 'eu-frankfurt',
}

/** Tencent Cloud COS. */
export const tcyun = defineVendor('tcyun', 'Tencent COS', '腾讯云', 'the console, CAM → API keys.', old => {
  const [bucket, appId] = [old.text('bucket'), old.text('appId')]
  const [urlPrefix, suffix] = [old.url('customUrl'), old.suffix('options')]
  if (old.text('version') === 'v4' && !urlPrefix)
    old.note('Version "v4" used URLs at another host. New URLs are at "cos.REGION.myqcloud.com".')
  return {
    accessKeyId: old.text('secretId'),
    secretAccessKey: old.text('secretKey'),
    bucket: bucket && appId && !bucket.endsWith(`-${appId}`) ? `${bucket}-${appId}` : bucket,
    region: renamed(TENCENT_REGIONS, old.text('area')),
    urlPrefix,
    urlSuffix: old.flag('slim') ? (suffix ? `${suffix}&imageSlim` : '?imageSlim') : suffix,
  }
})

function renamed(names: Readonly<Record<string, string>>, area: string | undefined): string | undefined {
  return area && (names[area] ?? area)
}

/**
 * Makes a provider of a vendor for which PicGo has a separate uploader. Its options are those of `s3`, without `preset` and
 * multipart uploads.
 *
 * @param where where a person creates the access keys
 * @param picgo translates PicGo's options, except the folders
 */
function defineVendor(
  type: PresetName,
  name: string,
  ownName: string,
  where: string,
  picgo: (old: PicGoOptions) => Partial<S3Options>,
): Provider {
  const { publicHost }: Preset = PRESETS[type]
  const asks = ['bucket', 'region', 'accessKeyId', 'secretAccessKey', publicHost ? 'urlPrefix?' : 'urlPrefix']
  const config = z.object(bucketOptions)
  const withPreset = (options: z.output<typeof config>) => ({ ...options, ...STANDARD_PARTS, preset: type })
  return defineProvider<typeof config>({
    type,
    about: {
      family: 'bucket',
      what: `${name}: \`s3\` with a preset`,
      testedAgainst: 'as `s3`',
      signs: true,
      choices: [{ label: `${name} · ${ownName}`, asks, where }],
    },
    config,
    redirected: { linkType: 'presigned' },
    validate: options => validate(withPreset(options)),
    open: (options, context) => openS3(withPreset(options), context),
    picgo(old) {
      // If URLs have another folder, both must be options, because the object key starts with only one of them.
      const [path, webPath] = [old.text('path'), old.text('webPath')]
      const folders = webPath === undefined ? {} : { path: path ?? '', webPath }
      return {
        bucket: old.text('bucket'),
        endpoint: old.text('endpoint'),
        ...picgo(old),
        ...folders,
        keyTemplate: old.template(webPath === undefined ? path : undefined),
      }
    },
  })
}
