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

/** Tencent Cloud COS. */
export const tcyun = defineVendor({
  type: 'tcyun',
  name: 'Tencent COS',
  label: 'Tencent COS · 腾讯云',
  where: 'the console, CAM → API keys.',
  picgo(old) {
    const [area, bucket, appId] = [old.text('area'), old.text('bucket'), old.text('appId')]
    const [urlPrefix, suffix] = [old.url('customUrl'), old.suffix('options')]
    if (old.text('version') === 'v4' && !urlPrefix)
      old.note('Version "v4" used URLs at another host. New URLs are at "cos.REGION.myqcloud.com".')
    return {
      accessKeyId: old.text('secretId'),
      secretAccessKey: old.text('secretKey'),
      bucket: bucket && appId && !bucket.endsWith(`-${appId}`) ? `${bucket}-${appId}` : bucket,
      region: area && (OLD_REGIONS[area] ?? area),
      urlPrefix,
      urlSuffix: old.flag('slim') ? (suffix ? `${suffix}&imageSlim` : '?imageSlim') : suffix,
    }
  },
})
