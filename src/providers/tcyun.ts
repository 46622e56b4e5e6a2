import { secret } from '../options.ts'
import * as z from '../packages/zod.ts'
import { defineVendor } from './s3/vendor.ts'

/** Names of the regions in version 4 of the API. */
const OLD_REGIONS: Readonly<Record<string, string>> = {
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

/** Tencent Cloud COS, with PicGo's name and options. */
export const tcyun = defineVendor({
  type: 'tcyun',
  about: {
    family: 'bucket',
    what: "Tencent COS, with PicGo's options",
    testedAgainst: 'as `s3`',
    example: {
      blog: {
        secretId: 'AKID…',
        secretKey: 'COS_SECRET',
        bucket: 'pictures-1250000000',
        area: 'ap-guangzhou',
        slim: true,
      },
    },
    signs: true,
    choices: [
      {
        label: 'Tencent COS · 腾讯云',
        asks: ['bucket', 'area', 'accessKeyId', 'secretAccessKey', 'urlPrefix?'],
        where: 'the console, CAM → API keys.',
      },
    ],
  },
  options: {
    secretId: z.string().optional().describe('PicGo name for "accessKeyId".'),
    secretKey: secret().optional().describe('PicGo name for "secretAccessKey".'),
    appId: z
      .string()
      .optional()
      .describe('Tencent app ID. Appended to the bucket name unless the name already ends with it.'),
    area: z.string().optional().describe('PicGo name for "region", such as "ap-guangzhou".'),
    version: z
      .enum(['', 'v4', 'v5'])
      .optional()
      .describe(
        'API version in PicGo. Accepted for compatibility; both versions are handled in the same way.',
      ),
    endpoint: z.string().optional().describe('Hostname of the API, such as "cos.accelerate.myqcloud.com".'),
    customUrl: z.string().optional().describe('PicGo name for "urlPrefix".'),
    options: z
      .string()
      .optional()
      .describe('PicGo name for "urlSuffix", such as "?imageMogr2/thumbnail/800x".'),
    slim: z.boolean().optional().describe('Append "imageSlim" to every URL, so that COS compresses images.'),
  },
  names: {
    secretId: 'accessKeyId',
    secretKey: 'secretAccessKey',
    area: 'region',
    customUrl: 'urlPrefix',
    options: 'urlSuffix',
  },
  adapt({ ours, read, options, notes }) {
    const [area, bucket, appId] = [read('area'), read('bucket'), read('appId')]
    if (area !== undefined) ours['region'] = OLD_REGIONS[area] ?? area
    if (bucket && appId && !bucket.endsWith(`-${appId}`)) ours['bucket'] = `${bucket}-${appId}`
    if (options['slim'] === true) {
      const suffix = ours['urlSuffix']
      ours['urlSuffix'] = suffix ? `${suffix}&imageSlim` : '?imageSlim'
    }
    if (read('version') === 'v4' && !read('customUrl')) {
      notes.push('Version "v4" used URLs at another host. New URLs are at "cos.REGION.myqcloud.com".')
    }
  },
})
