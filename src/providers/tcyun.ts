import { secret } from '../options.ts'
import * as z from '../packages/zod.ts'
import { defineVendor } from './s3/vendor.ts'

/** What version 4 of the API called the regions. */
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

/** Tencent Cloud COS, under the name and with the options it has in PicGo. */
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
    secretId: z.string().optional().describe('The name of "accessKeyId" in PicGo.'),
    secretKey: secret().optional().describe('The name of "secretAccessKey" in PicGo.'),
    appId: z
      .string()
      .optional()
      .describe('Appended to the name of the bucket, unless it ends with it already.'),
    area: z.string().optional().describe('The name of "region" in PicGo, such as "ap-guangzhou".'),
    version: z
      .enum(['', 'v4', 'v5'])
      .optional()
      .describe(
        'Version of the API in PicGo. Both are read, and buckets of both are reached in the same way.',
      ),
    endpoint: z.string().optional().describe('Host of the API, such as "cos.accelerate.myqcloud.com".'),
    customUrl: z.string().optional().describe('The name of "urlPrefix" in PicGo.'),
    options: z.string().optional().describe('The name of "urlSuffix" in PicGo: "?imageMogr2/…".'),
    slim: z
      .boolean()
      .optional()
      .describe('Append "imageSlim" to every URL, which makes COS compress pictures.'),
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
      notes.push('Version "v4" gave URLs at another host: new ones are at "cos.REGION.myqcloud.com".')
    }
  },
})
