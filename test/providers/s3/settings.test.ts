import { describe, expect, it } from 'vitest'
import { openS3, s3 } from '../../../src/providers/s3/index.ts'
import { PRESET_NAMES } from '../../../src/providers/s3/presets.ts'
import { resolveSettings, type S3Settings } from '../../../src/providers/s3/settings.ts'
import { play } from '../../helpers/player.ts'
import { openLoopbackS3 } from '../../helpers/s3-target.ts'
import { never, type Options, put } from '../../helpers/target.ts'

const parse = (options: Record<string, unknown>) => s3.config.parse({ bucket: 'pics', ...options })
const problemOf = (options: Record<string, unknown>) => s3.validate?.(parse(options))

const IMG = { urlPrefix: 'https://img.example.com' }

/**
 * Options, and where the objects are. Then, if they differ: the region that is signed for, which is `region` or us-east-1, and
 * the public URL, which is `urlPrefix` or the place itself.
 */
const PLACES: [options: Record<string, string>, place: string, region?: string | undefined, site?: string][] =
  [
    [{ preset: 'aws', region: 'eu-central-1' }, 'pics.s3.eu-central-1.amazonaws.com'],
    [{ region: 'cn-north-1' }, 'pics.s3.cn-north-1.amazonaws.com.cn'],
    [{ region: 'us-east-1', bucket: 'img.example.com' }, 's3.us-east-1.amazonaws.com/img.example.com'],
    [
      { preset: 'aliyun', region: 'cn-hangzhou' },
      'pics.s3.oss-cn-hangzhou.aliyuncs.com',
      undefined,
      'pics.oss-cn-hangzhou.aliyuncs.com',
    ],
    [
      { preset: 'aliyun', region: 'cn-hangzhou-internal' },
      'pics.s3.oss-cn-hangzhou-internal.aliyuncs.com',
      'cn-hangzhou',
      'pics.oss-cn-hangzhou.aliyuncs.com',
    ],
    [
      { preset: 'tcyun', region: 'ap-guangzhou', bucket: 'pics-1250000000' },
      'pics-1250000000.cos.ap-guangzhou.myqcloud.com',
    ],
    [{ preset: 'qiniu', region: 'cn-east-1', ...IMG }, 's3.cn-east-1.qiniucs.com/pics'],
    [{ preset: 'upyun-s3', ...IMG }, 's3.api.upyun.com/pics'],
    [{ preset: 'huawei-obs', region: 'cn-north-4' }, 'pics.obs.cn-north-4.myhuaweicloud.com'],
    [
      { preset: 'volcengine-tos', region: 'cn-beijing' },
      'pics.tos-s3-cn-beijing.volces.com',
      undefined,
      'pics.tos-cn-beijing.volces.com',
    ],
    [
      { preset: 'cloudflare-r2', accountId: '0123abc', ...IMG },
      '0123abc.r2.cloudflarestorage.com/pics',
      'auto',
    ],
    [
      { endpoint: '0123abc.eu.r2.cloudflarestorage.com', ...IMG },
      '0123abc.eu.r2.cloudflarestorage.com/pics',
      'auto',
    ],
    [{ preset: 'backblaze-b2', region: 'us-west-004' }, 'pics.s3.us-west-004.backblazeb2.com'],
    [{ preset: 'minio', endpoint: 'https://minio.example.com:9000' }, 'minio.example.com:9000/pics'],
    [{ preset: 'wasabi', region: 'eu-west-2' }, 'pics.s3.eu-west-2.wasabisys.com'],
    [{ preset: 'do-spaces', region: 'fra1' }, 'pics.fra1.digitaloceanspaces.com'],
    [{ preset: 'gcs' }, 'storage.googleapis.com/pics', 'auto'],
    [{ preset: 'scaleway', region: 'fr-par' }, 'pics.s3.fr-par.scw.cloud'],
    [{ preset: 'hetzner', region: 'fsn1' }, 'pics.fsn1.your-objectstorage.com'],
    [{ preset: 'tigris', ...IMG }, 'pics.t3.storage.dev', 'auto'],
    [{ endpoint: 't3.storage.dev', ...IMG }, 'pics.t3.storage.dev', 'auto'],
    [{ preset: 'linode', region: 'nl-ams-1' }, 'pics.nl-ams-1.linodeobjects.com'],
    [
      { preset: 'storj', urlPrefix: 'https://link.storjshare.io/raw/access/pics' },
      'gateway.storjshare.io/pics',
    ],
    [{ preset: 'idrive-e2', endpoint: 'l4g4.ch11.idrivee2-2.com' }, 'l4g4.ch11.idrivee2-2.com/pics'],
    [{ preset: 'baidu-bos', region: 'bj' }, 'pics.s3.bj.bcebos.com', undefined, 'pics.bj.bcebos.com'],
    [
      { preset: 'oracle', accountId: 'axaxnpcrorw5', region: 'eu-frankfurt-1', ...IMG },
      'axaxnpcrorw5.compat.objectstorage.eu-frankfurt-1.oraclecloud.com/pics',
    ],
    [
      { endpoint: 'axaxnpcrorw5.compat.objectstorage.us-ashburn-1.oraclecloud.com', ...IMG },
      'axaxnpcrorw5.compat.objectstorage.us-ashburn-1.oraclecloud.com/pics',
      'us-ashburn-1',
    ],
    [{ preset: 'rustfs', endpoint: 'https://rustfs.example.com:9000' }, 'rustfs.example.com:9000/pics'],
    [{ preset: 'seaweedfs', endpoint: 'https://weed.example.com:8333' }, 'weed.example.com:8333/pics'],
    [{ preset: 'garage', endpoint: 'garage.example.com', ...IMG }, 'garage.example.com/pics', 'garage'],
    [{ endpoint: 'https://store.example.com/storage/v1/s3', ...IMG }, 'store.example.com/storage/v1/s3/pics'],
    [
      { endpoint: 'store.example.com', addressingStyle: 'virtual', urlPrefix: 'https://img.example.com/x/' },
      'pics.store.example.com',
    ],
    [
      { preset: 'aliyun', region: 'cn-beijing', endpoint: 'oss.example.com', addressingStyle: 'cname' },
      'oss.example.com',
    ],
    [
      { endpoint: 'https://127.0.0.1:9000', addressingStyle: 'virtual', preset: 'minio' },
      '127.0.0.1:9000/pics',
    ],
    [{ preset: 'aws', region: 'us-east-1', bucket: 'Old_Name:x' }, 's3.us-east-1.amazonaws.com/Old_Name%3Ax'],
    [{ endpoint: 's3.us-west-000.backblazeb2.com' }, 'pics.s3.us-west-000.backblazeb2.com', 'us-west-000'],
  ]

describe('where the objects of a preset are', () => {
  it('is told for every preset', () => {
    const told = PLACES.map(([options]) => options['preset'])
    expect(PRESET_NAMES.filter(name => name !== 'custom' && !told.includes(name))).toEqual([])
  })

  it.each(PLACES)(
    '%j: https://%s',
    (options, place, region = options['region'] ?? 'us-east-1', site = place) => {
      const { bucketUrl, publicUrl, ...found } = resolveSettings(parse(options)) as S3Settings
      expect([bucketUrl, found.region]).toEqual([`https://${place}`, region])
      expect(publicUrl?.replace(/\/$/, '')).toBe(
        options['urlPrefix']?.replace(/\/$/, '') ?? `https://${site}`,
      )
    },
  )
})

describe('options of s3 that do not fit together', () => {
  const EU = { region: 'eu-west-1' }
  const X = { urlPrefix: 'https://x.example' }
  const SIGNED = { linkType: 'presigned' }
  const KEYS = { accessKeyId: 'A', secretAccessKey: 'B' }
  it.each<[Options, RegExp]>([
    [{}, /^"region" is required for aws, because it is part of the endpoint\.$/],
    [{ preset: 'aliyun' }, /^"region" is required/],
    [{ preset: 'cloudflare-r2', ...X }, /^"accountId" is required/],
    [{ preset: 'minio' }, /^"endpoint" is required for minio\./],
    [{ preset: 'custom' }, /^"endpoint" is required/],
    [{ preset: 'aws', ...EU, addressingStyle: 'cname' }, /^"endpoint" is required with "addressingStyle"/],
    [{ endpoint: 's3.example.com' }, /^"urlPrefix" is required: custom has no public URL/],
    [{ preset: 'qiniu', region: 'cn-east-1' }, /^"urlPrefix" is required: qiniu/],
    [{ preset: 'garage', endpoint: 'g.example' }, /^"urlPrefix" is required: garage/],
    [{ ...EU, accessKeyId: 'A' }, /Set both "accessKeyId" and "secretAccessKey"/],
    [{ ...EU, secretAccessKey: 'A' }, /Set both "accessKeyId" and "secretAccessKey"/],
    [{ ...EU, sessionToken: 'A' }, /"sessionToken" needs/],
    [{ ...EU, sseKmsKeyId: 'A' }, /"sseKmsKeyId" needs "serverSideEncryption"/],
    [{ ...EU, sseKmsKeyId: 'A', serverSideEncryption: 'AES256' }, /"sseKmsKeyId" needs/],
    [{ ...EU, ...SIGNED, ...X }, /"urlPrefix" can't be used with "linkType": "presigned"/],
    [{ ...EU, ...SIGNED, urlSuffix: '?x' }, /"urlSuffix" can't be used with "linkType": "presigned"/],
    [
      { preset: 'cloudflare-r2', accountId: 'a', ...SIGNED, acl: 'private' },
      /^"acl" is not supported by cloudflare/,
    ],
    [
      { preset: 'upyun-s3', ...KEYS, sessionToken: 'C', ...SIGNED },
      /^"sessionToken" is not supported by upyun-s3/,
    ],
    [
      { endpoint: 'https://pics.s3.example.com', addressingStyle: 'virtual', ...X },
      /^"endpoint" already contains the bucket\. Remove "pics\." from it/,
    ],
    [
      { endpoint: 'https://acc.r2.cloudflarestorage.com/pics', ...X },
      /contains the bucket\. Remove "\/pics" from/,
    ],
    [{ endpoint: 's3.example.com/pics/', ...X }, /already contains the bucket\. Remove "\/pics" from/],
  ])('%j', (options, words) => {
    const problem = problemOf(options)
    expect(problem).toMatch(words)
    expect(problem).not.toMatch(/https?:\/\//)
    expect(() => openS3(parse(options), {} as never)).toThrow(problem)
  })

  it.each<[Record<string, unknown>]>([
    [{ region: 'eu-west-1' }],
    [{ region: 'eu-west-1', linkType: 'presigned' }],
    [{ preset: 'cloudflare-r2', accountId: 'a', linkType: 'presigned' }],
    [{ preset: 'minio', endpoint: 'http://127.0.0.1:9000' }],
    [{ endpoint: 'pics.example.com', addressingStyle: 'cname' }],
    [{ endpoint: 's3.eu-west-1.amazonaws.com' }],
    [{ endpoint: 's3.example.com/pics2', urlPrefix: 'https://x.example' }],
    [{ endpoint: 's3.example.com', linkType: 'presigned' }],
  ])('but %j does', options => {
    expect(problemOf(options)).toBeUndefined()
  })
})

describe('single options of s3', () => {
  it.each<[string, unknown]>([
    ['endpoint', 'https://http://s3.example.com'],
    ['endpoint', 'ftp://s3.example.com'],
    ['endpoint', 'https://s3.example.com/?x=1'],
    ['endpoint', 'https://user:password@s3.example.com'],
    ['endpoint', ''],
    ['bucket', ' '],
    ['path', '../up'],
    ['path', 'a/./b'],
    ['urlPrefix', 'img.example.com'],
    ['urlSuffix', '?a="b"'],
    ['urlSuffix', '?a b'],
    ['cacheControl', 'max-age=1\nX: y'],
    ['contentDisposition', 'äöü'],
    ['presignedFor', '8d'],
    ['presignedFor', 3600],
    ['acl', 'public'],
    ['serverSideEncryption', true],
    ['partSize', '1KB'],
    ['multipartThreshold', '6GB'],
    ['preset', 'amazon'],
  ])('refuse "%s": %j', (name, value) => {
    expect(s3.config.safeParse({ bucket: 'pics', [name]: value }).success).toBe(false)
  })

  it('are all described', () => {
    for (const [name, option] of Object.entries(s3.config.shape)) {
      expect(option.description, name).toMatch(/^[A-Z].*\.$/)
    }
  })
})

describe('the size of parts', () => {
  it.each([
    ['aws', { region: 'eu-west-1' }, 100 * 1024 ** 2, 5 * 1024 ** 2],
    ['aws', { region: 'eu-west-1' }, 1024 ** 4, Math.ceil(1024 ** 4 / 10_000)],
    ['scaleway', { region: 'fr-par' }, 100 * 1024 ** 3, Math.ceil((100 * 1024 ** 3) / 1000)],
  ])('fits the most that %s takes (%j, %i bytes)', (preset, options, size, partSize) => {
    const settings = resolveSettings(parse({ preset, ...options })) as S3Settings
    expect(settings.partSizeOf(size)).toBe(partSize)
  })
})

it('the folder is in front of every object key, whatever is done with it', async () => {
  const { url: endpoint, lines } = await play({ status: 200, headers: { 'x-amz-request-id': '1' } })
  const keys = { accessKeyId: 'AK', secretAccessKey: 's' }
  const target = openLoopbackS3({ endpoint, bucket: 'pics', path: 'img', linkType: 'presigned', ...keys })
  await put(target, 'a.png')
  await target.exists?.('a.png', never())
  await target.remove?.('a.png', never())
  expect(lines()).toEqual(['PUT', 'HEAD', 'DELETE'].map(method => `${method} /pics/img/a.png`))
  expect((await target.sign?.('a.png', 'GET', 60, never()))?.url).toContain('/pics/img/a.png?')
})
