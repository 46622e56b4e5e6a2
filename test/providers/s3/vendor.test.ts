import { describe, expect, it } from 'vitest'
import type { Provider } from '../../../src/providers/contract.ts'
import { aliyun, qiniu, tcyun } from '../../../src/providers/s3/vendors.ts'
import { play } from '../../helpers/player.ts'
import { type Options, open, problemOf, put } from '../../helpers/target.ts'

/** Stores an object by options as they stand in a file: the path that was asked, the key that signed, and the URL. */
async function store(provider: Provider, options: Options) {
  const { url: endpoint, requests } = await play({ status: 200, headers: { etag: '"x"' } })
  const target = await open(provider, { endpoint, addressingStyle: 'path', ...options })
  const { url } = await put(target, 'a b.png')
  const scope = /Credential=([^,]*)/.exec(requests[0]?.headers['authorization'] ?? '')?.[1]
  return { path: requests[0]?.url, scope: scope?.replace(/\/\d{8}\//, '/'), url }
}

const BASE = 'https://img.example.com'
const KEYS = { accessKeyId: 'AK', secretAccessKey: 's', bucket: 'pics' }

describe('a vendor of its own id', () => {
  it.each<[Provider, string, Options]>([
    [aliyun, 'cn-beijing', { path: 'img', urlSuffix: '!small' }],
    [tcyun, 'ap-guangzhou', {}],
    [qiniu, 'cn-north-1', { urlSuffix: '?imageslim' }],
  ])('takes the options of s3 (%#)', async (provider, region, more) => {
    const folder = more['path'] ? `${more['path']}/` : ''
    expect(await store(provider, { ...KEYS, region, urlPrefix: BASE, ...more })).toEqual({
      path: `/pics/${folder}a%20b.png`,
      scope: `AK/${region}/s3/aws4_request`,
      url: `${BASE}/${folder}a%20b.png${more['urlSuffix'] ?? ''}`,
    })
    const signed = await store(provider, { ...KEYS, region, linkType: 'presigned' })
    expect(signed.url).toContain('X-Amz-Signature=')
  })

  it.each<[Provider, Options, RegExp]>([
    [aliyun, { bucket: 'pics' }, /^"region" is required/],
    [aliyun, { bucket: 'pics', region: 'cn-beijing', accessKeyId: 'A' }, /Set both/],
    [aliyun, { bucket: 'pics', region: 'cn-beijing' }, /^$/],
    [qiniu, { bucket: 'pics', region: 'cn-east-1' }, /^"urlPrefix" is required/],
  ])('says what is wrong (%#)', (provider, options, words) => {
    expect(problemOf(provider, options) ?? '').toMatch(words)
  })
})
