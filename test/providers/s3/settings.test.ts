import { describe, expect, it } from 'vitest'
import { s3 } from '../../../src/providers/s3/index.ts'
import { findProblem, requireSettings } from '../../../src/providers/s3/settings.ts'

const parse = (options: Record<string, unknown>) => s3.config.parse({ bucket: 'pics', ...options })
const problemOf = (options: Record<string, unknown>) => findProblem(parse(options))

describe('options of s3 that do not fit together', () => {
  it.each<[Record<string, unknown>, RegExp]>([
    [{}, /^"region" is needed: it is a part of the address of aws\.$/],
    [{ preset: 'aliyun' }, /^"region" is needed/],
    [{ preset: 'cloudflare-r2', urlPrefix: 'https://x.example' }, /^"accountId" is needed/],
    [{ preset: 'minio' }, /^"endpoint" is needed: minio runs at an address of its own\.$/],
    [{ preset: 'custom' }, /^"endpoint" is needed/],
    [
      { preset: 'aws', region: 'eu-west-1', addressingStyle: 'cname' },
      /^"endpoint" is needed for "addressingStyle"/,
    ],
    [{ endpoint: 's3.example.com' }, /^"urlPrefix" is needed: custom has no address/],
    [{ preset: 'qiniu', region: 'cn-east-1' }, /^"urlPrefix" is needed: qiniu/],
    [{ preset: 'garage', endpoint: 'g.example' }, /^"urlPrefix" is needed: garage/],
    [{ region: 'eu-west-1', accessKeyId: 'A' }, /"accessKeyId" and "secretAccessKey" belong together/],
    [{ region: 'eu-west-1', secretAccessKey: 'A' }, /"accessKeyId" and "secretAccessKey" belong together/],
    [{ region: 'eu-west-1', sessionToken: 'A' }, /"sessionToken" needs/],
    [{ region: 'eu-west-1', sseKmsKeyId: 'A' }, /"sseKmsKeyId" needs "serverSideEncryption"/],
    [{ region: 'eu-west-1', sseKmsKeyId: 'A', serverSideEncryption: 'AES256' }, /"sseKmsKeyId" needs/],
    [
      { region: 'eu-west-1', url: 'presigned', urlPrefix: 'https://x.example' },
      /"urlPrefix" has to be left out/,
    ],
    [{ region: 'eu-west-1', url: 'presigned', urlSuffix: '?x' }, /"urlSuffix" has to be left out/],
    [
      { preset: 'cloudflare-r2', accountId: 'a', url: 'presigned', acl: 'private' },
      /^"acl" has to be left out: cloudflare-r2 does not take it\.$/,
    ],
    [
      { preset: 'upyun-s3', accessKeyId: 'A', secretAccessKey: 'B', sessionToken: 'C', url: 'presigned' },
      /^"sessionToken" has to be left out: upyun-s3/,
    ],
    [
      { endpoint: 'https://pics.s3.example.com', addressingStyle: 'virtual', urlPrefix: 'https://x.example' },
      /^"endpoint" names the bucket, which is put there anyway: take "pics\." out of it/,
    ],
  ])('%j', (options, words) => {
    const problem = problemOf(options)
    expect(problem).toMatch(words)
    expect(problem).not.toMatch(/https?:\/\//)
    expect(() => requireSettings(parse(options))).toThrow(problem)
  })

  it.each<[Record<string, unknown>]>([
    [{ region: 'eu-west-1' }],
    [{ region: 'eu-west-1', url: 'presigned' }],
    [{ preset: 'cloudflare-r2', accountId: 'a', url: 'presigned' }],
    [{ preset: 'minio', endpoint: 'http://127.0.0.1:9000' }],
    [{ endpoint: 'pics.example.com', addressingStyle: 'cname' }],
    [{ endpoint: 's3.eu-west-1.amazonaws.com' }],
    [{ endpoint: 's3.example.com', url: 'presigned' }],
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
    ['presignedForS', 604_801],
    ['presignedForS', 0],
    ['acl', 'public'],
    ['serverSideEncryption', true],
    ['partSize', 1024],
    ['multipartThreshold', 6 * 1024 ** 3],
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
    expect(requireSettings(parse({ preset, ...options })).partSizeOf(size)).toBe(partSize)
  })
})
