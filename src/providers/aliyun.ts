import { defineVendor } from './s3/vendor.ts'

/** Alibaba Cloud OSS. */
export const aliyun = defineVendor({
  type: 'aliyun',
  name: 'Aliyun OSS',
  label: 'Aliyun OSS · 阿里云',
  where: 'the RAM console: a user with an AccessKey.',
  picgo: old => ({
    accessKeyId: old.text('accessKeyId'),
    secretAccessKey: old.text('accessKeySecret'),
    region: old.text('area')?.replace(/^oss-/, ''),
    urlPrefix: old.url('customUrl'),
    urlSuffix: old.suffix('options'),
  }),
})
