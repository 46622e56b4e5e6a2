import { defineVendor } from './s3/vendor.ts'

/** Regions with another name in PicGo. */
const REGIONS: Readonly<Record<string, string>> = {
  z0: 'cn-east-1',
  z1: 'cn-north-1',
  z2: 'cn-south-1',
  na0: 'us-north-1',
  as0: 'ap-southeast-1',
}

/** Qiniu Kodo. */
export const qiniu = defineVendor({
  type: 'qiniu',
  name: 'Qiniu Kodo',
  label: 'Qiniu Kodo · 七牛云',
  where: 'the portal, 个人中心 → 密钥管理.',
  picgo(old) {
    const area = old.text('area')
    return {
      accessKeyId: old.text('accessKey'),
      secretAccessKey: old.text('secretKey'),
      region: area && (REGIONS[area] ?? area),
      urlPrefix: old.url('url'),
      urlSuffix: old.suffix('options'),
    }
  },
})
