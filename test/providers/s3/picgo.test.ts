import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Provider } from '../../../src/providers/contract.ts'
import { s3 } from '../../../src/providers/s3/index.ts'
import { aliyun, qiniu, tcyun } from '../../../src/providers/s3/vendors.ts'
import { fromPicGo } from '../../helpers/from-picgo.ts'

type Options = Record<string, unknown>

const HASHED = '{filename}-{sha256-8}{extname}'
const EXAMPLE = 'https://img.example.com'

/** What PicGo saves, and what it becomes. */
const SAVED: readonly [provider: Provider, theirs: Options, ours: Options][] = [
  [
    aliyun,
    {
      ...{ accessKeyId: 'LTAI', accessKeySecret: 'the secret', bucket: 'pics', area: 'oss-cn-hangzhou' },
      ...{ path: 'img/blog/', customUrl: `${EXAMPLE}/`, options: '?x-oss-process=style/small' },
    },
    {
      ...{ accessKeyId: 'LTAI', secretAccessKey: 'the secret', bucket: 'pics', region: 'cn-hangzhou' },
      ...{ urlPrefix: EXAMPLE, urlSuffix: '?x-oss-process=style/small', keyTemplate: `img/blog/${HASHED}` },
    },
  ],
  [
    tcyun,
    {
      ...{ version: 'v5', secretId: 'AKID', secretKey: 'the secret', bucket: 'pics-1250000000' },
      ...{ appId: '1250000000', area: 'ap-guangzhou', endpoint: '', path: '', customUrl: '' },
      ...{ options: '?imageMogr2/thumbnail/!50p', slim: true },
    },
    {
      ...{ accessKeyId: 'AKID', secretAccessKey: 'the secret', bucket: 'pics-1250000000' },
      ...{ region: 'ap-guangzhou', urlSuffix: '?imageMogr2/thumbnail/!50p&imageSlim', keyTemplate: HASHED },
    },
  ],
  [
    qiniu,
    {
      ...{ accessKey: 'AK', secretKey: 'the secret', bucket: 'pics', url: EXAMPLE, area: 'z2' },
      ...{ options: '?imageslim', path: 'img/' },
    },
    {
      ...{ accessKeyId: 'AK', secretAccessKey: 'the secret', bucket: 'pics', urlPrefix: EXAMPLE },
      ...{ region: 'cn-south-1', urlSuffix: '?imageslim', keyTemplate: `img/${HASHED}` },
    },
  ],
  [
    s3,
    {
      ...{ accessKeyID: 'AKIA', secretAccessKey: 'the secret', bucketName: 'pics', region: 'eu-central-1' },
      ...{ uploadPath: '{year}/{month}/{md5}.{extName}', endpoint: '', proxy: '', urlPrefix: `${EXAMPLE}/` },
      ...{ pathStyleAccess: false, acl: 'public-read' },
    },
    {
      ...{ accessKeyId: 'AKIA', secretAccessKey: 'the secret', bucket: 'pics', region: 'eu-central-1' },
      ...{ urlPrefix: EXAMPLE, addressingStyle: 'virtual', acl: 'public-read' },
      keyTemplate: '{Y}/{m}/{md5}{extname}',
    },
  ],
]

/** What comes out has to be a configuration that can be used. */
function translate(provider: Provider, options: Options): { options: Options; notes: string[] } {
  const translated = fromPicGo(provider, options)
  const { keyTemplate: _, proxy: __, ...own } = translated.options
  const config = z.strictObject(provider.config.shape).parse(own)
  expect(provider.validate?.(config)).toBeUndefined()
  return translated
}

/** Options that differ from the saved ones, what else they become, and the notes. */
const MORE: readonly [provider: Provider, theirs: Options, ours: Options, ...notes: string[]][] = [
  [aliyun, { path: '', customUrl: null, options: false }, { urlPrefix: undefined, keyTemplate: HASHED }],
  [aliyun, { options: null }, { urlSuffix: undefined }],
  [aliyun, { customUrl: 'img.example.com' }, {}, '"customUrl" has no scheme, so https was assumed'],
  [aliyun, { customUrl: 'http://img.example.com//' }, { urlPrefix: 'http://img.example.com' }],
  [aliyun, { customUrl: `${EXAMPLE}/?a=b` }, { urlPrefix: undefined }, '"customUrl" was not imported'],
  [aliyun, { options: '!small' }, { urlSuffix: '!small' }],
  [aliyun, { options: '?text_5paH(1)' }, { urlSuffix: '?text_5paH%281%29' }],
  [aliyun, { options: '?a="b c"' }, { urlSuffix: '?a=%22b%20c%22' }],
  [aliyun, { options: '?文' }, { urlSuffix: '?%E6%96%87' }],
  [aliyun, { webPath: '/cdn/' }, { path: 'img/blog/', webPath: '/cdn/', keyTemplate: HASHED }],
  [aliyun, { path: '../{nothing}' }, { keyTemplate: HASHED }, '"path" was not imported'],
  [tcyun, { options: '' }, { urlSuffix: '?imageSlim' }],
  [tcyun, { options: '', slim: false }, { urlSuffix: undefined }],
  [
    tcyun,
    { version: 'v4', bucket: 'pics', area: 'sh', appId: 1250000000 },
    { region: 'ap-shanghai' },
    'Version "v4" used URLs at another host',
  ],
  [tcyun, { endpoint: 'cos.accelerate.myqcloud.com' }, { endpoint: 'cos.accelerate.myqcloud.com' }],
  [qiniu, { area: 'z0' }, { region: 'cn-east-1' }],
  [qiniu, { area: 'z1' }, { region: 'cn-north-1' }],
  [qiniu, { area: 'na0' }, { region: 'us-north-1' }],
  [qiniu, { area: 'as0' }, { region: 'ap-southeast-1' }],
  [qiniu, { area: 'cn-east-2' }, { region: 'cn-east-2' }],
  ...(
    [
      ['{year}{month}{day}/{fullName}', '{Y}{m}{d}/{filename}{extname}'],
      ['/a//{fileName}-{timestampMS}.{extName}', 'a//{filename}-{timestamp}{extname}'],
      ['{md5B64Short}-{timestamp}.{extName}', '{md5-8}-{timestampS}{extname}'],
      ['{sha256}.png', '{sha256}.png'],
      ['img/{year}', `img/{Y}/${HASHED}`],
      ['img/blog/', `img/blog/${HASHED}`],
      ['', HASHED],
      [undefined, HASHED],
    ] as const
  ).map(([uploadPath, keyTemplate]): (typeof MORE)[number] => [s3, { uploadPath }, { keyTemplate }]),
  [s3, { uploadPath: '{unknown}/x' }, { keyTemplate: HASHED }, '"path" was not imported'],
  [s3, { endpoint: 's3.us-west-000.backblazeb2.com', region: '' }, { region: undefined }],
  [
    s3,
    { endpoint: 'https://0a.r2.cloudflarestorage.com', region: 'auto' },
    { acl: undefined, region: 'auto' },
    '"acl" was not imported',
  ],
  [s3, { endpoint: 'http://minio.lan:9000', pathStyleAccess: 'true' }, { addressingStyle: 'path' }],
  // PicList appends the bucket to a URL of path style, unless it is told not to. The plugin of PicGo never does.
  [s3, { pathStyleAccess: true, disableBucketPrefixToURL: false }, { urlPrefix: `${EXAMPLE}/pics` }],
  [s3, { pathStyleAccess: true, disableBucketPrefixToURL: 'true' }, { urlPrefix: EXAMPLE }],
  [s3, { pathStyleAccess: true }, { urlPrefix: EXAMPLE }],
  // Without a URL, the vendor's is used if the ACL is public. Otherwise URLs are signed.
  [s3, { urlPrefix: '' }, { urlPrefix: undefined }],
  [
    s3,
    { urlPrefix: '', endpoint: 'https://s3.example.com/', pathStyleAccess: true },
    { urlPrefix: 'https://s3.example.com/pics' },
  ],
  [s3, { urlPrefix: '', endpoint: 'https://s3.example.com/' }, { urlPrefix: 'https://pics.s3.example.com' }],
  [
    s3,
    { urlPrefix: '', acl: 'auto', options: 'a=b' },
    { linkType: 'presigned', acl: undefined },
    'URLs are signed and expire after 7 days',
    '"options" was not imported',
  ],
  [
    s3,
    { proxy: 'ftp://127.0.0.1:7890', rejectUnauthorized: false },
    { proxy: undefined },
    '"rejectUnauthorized" was not imported',
    '"proxy" was not imported',
  ],
  [s3, { proxy: '127.0.0.1:7890' }, { proxy: 'http://127.0.0.1:7890' }],
]

describe('options of PicGo and PicList', () => {
  it.each(SAVED)('$type: become ours', (provider, theirs, ours) => {
    expect(translate(provider, theirs)).toEqual({ options: ours, notes: [] })
  })

  it.each(MORE)('$type: %j becomes %j', (provider, theirs, expected, ...words) => {
    const [, saved] = SAVED.find(([one]) => one === provider) ?? []
    const { options, notes } = translate(provider, { ...saved, ...theirs })
    for (const [name, value] of Object.entries(expected)) expect(options[name], name).toEqual(value)
    expect(notes).toEqual(words.map(text => expect.stringContaining(text)))
  })

  it('of any kind make it throw nothing', () => {
    for (const value of [null, 1, true, [], {}, '\ud800', '{', '://', 'http://', '../..', '\u0000'])
      for (const [provider, theirs] of SAVED) {
        const names = [...Object.keys(theirs), 'options', 'path', 'webPath']
        const options = Object.fromEntries(names.map(name => [name, value]))
        expect(() => fromPicGo(provider, options)).not.toThrow()
      }
  })
})
