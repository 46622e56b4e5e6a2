import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Provider } from '../../../src/providers/contract.ts'
import { s3 } from '../../../src/providers/s3/index.ts'
import { aliyun, qiniu, tcyun } from '../../../src/providers/s3/vendors.ts'
import { fromPicGo } from '../../helpers/from-picgo.ts'

type Options = Record<string, unknown>

const HASHED = '{filename}-{sha256-8}{extname}'

/** What comes out has to be a configuration that can be used. */
function translate(provider: Provider, options: Options): { options: Options; notes: string[] } {
  const translated = fromPicGo(provider, options)
  const { keyTemplate: _, proxy: __, ...own } = translated.options
  const config = z.strictObject(provider.config.shape).parse(own)
  expect(provider.validate?.(config)).toBeUndefined()
  return translated
}

describe("PicGo's options for aliyun", () => {
  const filled = {
    accessKeyId: 'LTAI',
    accessKeySecret: 'the secret',
    bucket: 'pics',
    area: 'oss-cn-hangzhou',
    path: 'img/blog/',
    customUrl: 'https://img.example.com/',
    options: '?x-oss-process=style/small',
  }
  const ours = {
    accessKeyId: 'LTAI',
    secretAccessKey: 'the secret',
    bucket: 'pics',
    region: 'cn-hangzhou',
    urlPrefix: 'https://img.example.com',
    urlSuffix: '?x-oss-process=style/small',
    keyTemplate: `img/blog/${HASHED}`,
  }

  it('become ours', () => {
    const { options, notes } = translate(aliyun, filled)
    expect(options).toEqual(ours)
    expect(notes).toEqual([])
  })

  it('mean unset when they are empty, null or false', () => {
    const empty = { ...filled, path: '', customUrl: null, options: false }
    const { urlPrefix: _, urlSuffix: __, ...rest } = ours
    expect(translate(aliyun, empty).options).toEqual({ ...rest, keyTemplate: HASHED })
  })

  it.each([
    ['img.example.com', 'https://img.example.com', /"customUrl" has no scheme, so https was assumed/],
    ['http://img.example.com//', 'http://img.example.com', undefined],
    ['https://img.example.com/?a=b', undefined, /"customUrl" was not imported/],
  ])('take %j for an address', (customUrl, urlPrefix, note) => {
    const { options, notes } = translate(aliyun, { ...filled, customUrl })
    expect(options['urlPrefix']).toBe(urlPrefix)
    if (note) expect(notes.join()).toMatch(note)
    expect(notes).toHaveLength(note ? 1 : 0)
  })

  it.each([
    ['!small', '!small'],
    ['?x-oss-process=image/watermark,text_5paH(1)', '?x-oss-process=image/watermark,text_5paH%281%29'],
    ['?a="b c"', '?a=%22b%20c%22'],
    ['?文', '?%E6%96%87'],
  ])('keep what is appended to URLs: %j', (options, urlSuffix) => {
    expect(translate(aliyun, { ...filled, options }).options['urlSuffix']).toBe(urlSuffix)
  })

  it('keep another folder for URLs', () => {
    const { options } = translate(aliyun, { ...filled, webPath: '/cdn/' })
    expect(options).toEqual({ ...ours, path: 'img/blog/', webPath: '/cdn/', keyTemplate: HASHED })
  })

  it('drop a folder that cannot be one', () => {
    const { options, notes } = translate(aliyun, { ...filled, path: '../{nothing}' })
    expect(options['keyTemplate']).toBe(HASHED)
    expect(notes.join()).toContain('"path" was not imported')
  })
})

describe("PicGo's options for tcyun", () => {
  const filled = {
    version: 'v5',
    secretId: 'AKID',
    secretKey: 'the secret',
    bucket: 'pics-1250000000',
    appId: '1250000000',
    area: 'ap-guangzhou',
    endpoint: '',
    path: '',
    customUrl: '',
    options: '?imageMogr2/thumbnail/!50p',
    slim: true,
  }
  const ours = {
    accessKeyId: 'AKID',
    secretAccessKey: 'the secret',
    bucket: 'pics-1250000000',
    region: 'ap-guangzhou',
    urlSuffix: '?imageMogr2/thumbnail/!50p&imageSlim',
    keyTemplate: HASHED,
  }

  it('become ours', () => {
    expect(translate(tcyun, filled).options).toEqual(ours)
  })

  it('make slim URLs without other options, too', () => {
    expect(translate(tcyun, { ...filled, options: '' }).options['urlSuffix']).toBe('?imageSlim')
    expect(translate(tcyun, { ...filled, options: '', slim: false }).options['urlSuffix']).toBeUndefined()
  })

  it('of version 4 name buckets and regions differently', () => {
    const old = { ...filled, version: 'v4', bucket: 'pics', area: 'sh', appId: 1250000000 }
    const { options, notes } = translate(tcyun, old)
    expect(options).toEqual({ ...ours, region: 'ap-shanghai' })
    expect(notes.join()).toContain('Version "v4" used URLs at another host')
  })

  it('may name another endpoint', () => {
    const { options } = translate(tcyun, { ...filled, endpoint: 'cos.accelerate.myqcloud.com' })
    expect(options).toEqual({ ...ours, endpoint: 'cos.accelerate.myqcloud.com' })
  })
})

describe("PicGo's options for qiniu", () => {
  const filled = {
    accessKey: 'AK',
    secretKey: 'the secret',
    bucket: 'pics',
    url: 'http://img.example.com',
    area: 'z2',
    options: '?imageslim',
    path: 'img/',
  }

  it('become ours', () => {
    expect(translate(qiniu, filled).options).toEqual({
      accessKeyId: 'AK',
      secretAccessKey: 'the secret',
      bucket: 'pics',
      urlPrefix: 'http://img.example.com',
      region: 'cn-south-1',
      urlSuffix: '?imageslim',
      keyTemplate: `img/${HASHED}`,
    })
  })

  it.each([
    ['z0', 'cn-east-1'],
    ['z1', 'cn-north-1'],
    ['na0', 'us-north-1'],
    ['as0', 'ap-southeast-1'],
    ['cn-east-2', 'cn-east-2'],
  ])('call the region %s what is %s elsewhere', (area, region) => {
    expect(translate(qiniu, { ...filled, area }).options['region']).toBe(region)
  })
})

describe("PicGo's options for S3", () => {
  const filled = {
    accessKeyID: 'AKIA',
    secretAccessKey: 'the secret',
    bucketName: 'pics',
    uploadPath: '{year}/{month}/{md5}.{extName}',
    region: 'eu-central-1',
    endpoint: '',
    proxy: '',
    urlPrefix: 'https://img.example.com/',
    pathStyleAccess: false,
    acl: 'public-read',
  }
  const ours = {
    accessKeyId: 'AKIA',
    secretAccessKey: 'the secret',
    bucket: 'pics',
    region: 'eu-central-1',
    urlPrefix: 'https://img.example.com',
    addressingStyle: 'virtual',
    acl: 'public-read',
    keyTemplate: '{Y}/{m}/{md5}{extname}',
  }

  it('become ours', () => {
    expect(translate(s3, filled)).toEqual({ options: ours, notes: [] })
  })

  it.each([
    ['{year}{month}{day}/{fullName}', '{Y}{m}{d}/{filename}{extname}'],
    ['/a//{fileName}-{timestampMS}.{extName}', 'a//{filename}-{timestamp}{extname}'],
    ['{md5B64Short}-{timestamp}.{extName}', '{md5-8}-{timestampS}{extname}'],
    ['{sha256}.png', '{sha256}.png'],
    ['img/{year}', `img/{Y}/${HASHED}`],
    ['img/blog/', `img/blog/${HASHED}`],
    ['', HASHED],
    [undefined, HASHED],
    ['{unknown}/x', HASHED],
  ])('turn the path %j into the template %j', (uploadPath, keyTemplate) => {
    expect(translate(s3, { ...filled, uploadPath }).options['keyTemplate']).toBe(keyTemplate)
  })

  it.each<[string, Options, Options]>([
    ['Backblaze', { endpoint: 's3.us-west-000.backblazeb2.com', region: '' }, { region: undefined }],
    [
      'R2',
      { endpoint: 'https://0a.r2.cloudflarestorage.com', region: 'auto' },
      { acl: undefined, region: 'auto' },
    ],
    [
      'MinIO',
      { endpoint: 'http://minio.example.com:9000', pathStyleAccess: 'true' },
      { addressingStyle: 'path' },
    ],
  ])('know %s by its endpoint', (_, theirs, expected) => {
    const { options } = translate(s3, { ...filled, ...theirs })
    for (const [name, value] of Object.entries(expected)) expect(options[name]).toBe(value)
  })

  it.each<[string, Options, string]>([
    [
      'PicList puts the bucket behind it',
      { disableBucketPrefixToURL: false },
      'https://img.example.com/pics',
    ],
    ['PicList is told not to', { disableBucketPrefixToURL: 'true' }, 'https://img.example.com'],
    ["PicGo's plugin never does", {}, 'https://img.example.com'],
  ])('have one more folder in URLs of path style when %s', (_, more, urlPrefix) => {
    expect(translate(s3, { ...filled, pathStyleAccess: true, ...more }).options['urlPrefix']).toBe(urlPrefix)
  })

  it('without an address mean that of the vendor when the ACL is public', () => {
    const { options } = translate(s3, { ...filled, urlPrefix: '' })
    expect(options).toEqual({ ...ours, urlPrefix: undefined })
    const own = { ...filled, urlPrefix: '', endpoint: 'https://s3.example.com/', pathStyleAccess: true }
    expect(translate(s3, own).options['urlPrefix']).toBe('https://s3.example.com/pics')
    const virtual = { ...own, pathStyleAccess: false }
    expect(translate(s3, virtual).options['urlPrefix']).toBe('https://pics.s3.example.com')
  })

  it('without an address and a public ACL mean signed URLs', () => {
    const { options, notes } = translate(s3, { ...filled, urlPrefix: '', acl: 'auto', options: 'a=b' })
    expect(options).toMatchObject({ linkType: 'presigned' })
    expect(options['acl']).toBeUndefined()
    expect(notes).toEqual([
      expect.stringContaining('URLs are signed and expire after 7 days'),
      expect.stringContaining('"options" was not imported'),
    ])
  })

  it('tell what is lost', () => {
    const { notes } = translate(s3, { ...filled, proxy: 'ftp://127.0.0.1:7890', rejectUnauthorized: false })
    expect(notes).toEqual([
      expect.stringContaining('"rejectUnauthorized" was not imported'),
      expect.stringContaining('"proxy" was not imported'),
    ])
  })

  it('name a proxy, which is taken over', () => {
    const { options } = translate(s3, { ...filled, proxy: '127.0.0.1:7890' })
    expect(options['proxy']).toBe('http://127.0.0.1:7890')
  })

  it('of any kind make it throw nothing', () => {
    const odd: unknown[] = [null, 1, true, [], {}, '\ud800', '{', '://', 'http://', '../..', '\u0000']
    for (const provider of [s3, aliyun, tcyun, qiniu]) {
      for (const value of odd) {
        const names = [
          ...Object.keys(filled),
          'accessKeySecret',
          'area',
          'customUrl',
          'options',
          'url',
          'webPath',
        ]
        const options = Object.fromEntries([...names, 'path', 'slim', 'appId'].map(name => [name, value]))
        expect(() => fromPicGo(provider, options)).not.toThrow()
      }
    }
  })
})
