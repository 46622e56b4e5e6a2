import { secret } from '../options.ts'
import * as z from '../packages/zod.ts'
import { toUrlPrefix } from './s3/picgo.ts'
import { defineVendor } from './s3/vendor.ts'

/** Regions with another name in PicGo. */
const REGIONS: Readonly<Record<string, string>> = {
  z0: 'cn-east-1',
  z1: 'cn-north-1',
  z2: 'cn-south-1',
  na0: 'us-north-1',
  as0: 'ap-southeast-1',
}

/** Qiniu Kodo, with PicGo's name and options. */
export const qiniu = defineVendor({
  type: 'qiniu',
  about: {
    family: 'bucket',
    what: "Qiniu Kodo, with PicGo's options",
    testedAgainst: 'as `s3`',
    example: {
      blog: {
        accessKey: '…',
        secretKey: 'QINIU_SECRET',
        bucket: 'pictures',
        area: 'z0',
        url: 'https://img.example.com',
        options: '?imageslim',
      },
    },
    signs: true,
    choices: [
      {
        label: 'Qiniu Kodo · 七牛云',
        asks: ['bucket', 'area', 'accessKeyId', 'secretAccessKey', 'urlPrefix'],
        where: 'the portal, 个人中心 → 密钥管理.',
      },
    ],
  },
  options: {
    accessKey: z.string().optional().describe('PicGo name for "accessKeyId".'),
    secretKey: secret().optional().describe('PicGo name for "secretAccessKey".'),
    area: z
      .string()
      .optional()
      .describe('Region in PicGo\'s notation, such as "z0", "z1", "z2", "na0" or "as0".'),
    url: z.string().optional().describe('PicGo name for "urlPrefix": the domain bound to the bucket.'),
    options: z.string().optional().describe('PicGo name for "urlSuffix", such as "?imageslim".'),
  },
  names: { accessKey: 'accessKeyId', secretKey: 'secretAccessKey', area: 'region', options: 'urlSuffix' },
  adapt({ ours, read, notes }) {
    const [area, url] = [read('area'), read('url')]
    if (area !== undefined) ours['region'] = REGIONS[area] ?? area
    if (url !== undefined) ours['urlPrefix'] = toUrlPrefix(url, 'url', notes)
  },
})
