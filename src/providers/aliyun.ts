import { secret } from '../options.ts'
import * as z from '../packages/zod.ts'
import { defineVendor } from './s3/vendor.ts'

/** Alibaba Cloud OSS, with PicGo's name and options. */
export const aliyun = defineVendor({
  type: 'aliyun',
  about: {
    family: 'bucket',
    what: "Aliyun OSS, with PicGo's options",
    testedAgainst: 'as `s3`',
    example: {
      blog: {
        accessKeyId: 'LTAI…',
        accessKeySecret: 'OSS_SECRET',
        bucket: 'pictures',
        area: 'oss-cn-hangzhou',
        customUrl: 'https://img.example.com',
        options: '?x-oss-process=style/small',
      },
    },
    signs: true,
    choices: [
      {
        label: 'Aliyun OSS · 阿里云',
        asks: ['bucket', 'area', 'accessKeyId', 'secretAccessKey', 'urlPrefix?'],
        where: 'the RAM console: a user with an AccessKey.',
      },
    ],
  },
  options: {
    accessKeySecret: secret().optional().describe('PicGo name for "secretAccessKey".'),
    area: z.string().optional().describe('Region in PicGo\'s notation, such as "oss-cn-hangzhou".'),
    customUrl: z.string().optional().describe('PicGo name for "urlPrefix".'),
    options: z
      .string()
      .optional()
      .describe('PicGo name for "urlSuffix", such as "?x-oss-process=style/small".'),
  },
  names: {
    accessKeySecret: 'secretAccessKey',
    area: 'region',
    customUrl: 'urlPrefix',
    options: 'urlSuffix',
  },
  adapt({ ours, read }) {
    const area = read('area')
    if (area !== undefined) ours['region'] = area.replace(/^oss-/, '')
  },
})
