import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import type { Provider } from '../../../src/providers/contract.ts'
import { aliyun, qiniu, tcyun } from '../../../src/providers/s3/vendors.ts'
import { objectOf } from '../../helpers/provider-contract.ts'
import { startRecorder } from '../../helpers/recorder.ts'

type Options = Record<string, unknown>

/** Stores an object by options as they stand in a file: the path that was asked, the key that signed, and the URL. */
async function put(provider: Provider, options: Options) {
  const recorder = await startRecorder(() => ({ status: 200, headers: { etag: '"x"' } }))
  const local = { endpoint: `http://127.0.0.1:${recorder.port}`, addressingStyle: 'path', ...options }
  const config = z.strictObject(provider.config.shape).parse(local)
  expect(provider.validate?.(config)).toBeUndefined()
  const target = await provider.open(config, { name: 'Default', warn: text => expect.fail(text) })
  onTestFinished(async () => {
    await target.close?.()
    recorder.close()
  })
  const { url } = await target.put(objectOf('a b.png', Buffer.of(1)), new AbortController().signal)
  const [request] = recorder.requests
  const scope = /Credential=([^,]*)/.exec(request?.headers['authorization'] ?? '')?.[1]
  return { path: request?.url, scope: scope?.replace(/\/\d{8}\//, '/'), url }
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
    expect(await put(provider, { ...KEYS, region, urlPrefix: BASE, ...more })).toEqual({
      path: `/pics/${folder}a%20b.png`,
      scope: `AK/${region}/s3/aws4_request`,
      url: `${BASE}/${folder}a%20b.png${more['urlSuffix'] ?? ''}`,
    })
    const signed = await put(provider, { ...KEYS, region, linkType: 'presigned' })
    expect(signed.url).toContain('X-Amz-Signature=')
  })

  it.each<[Provider, Options, RegExp]>([
    [aliyun, { bucket: 'pics' }, /^"region" is required/],
    [aliyun, { bucket: 'pics', region: 'cn-beijing', accessKeyId: 'A' }, /Set both/],
    [aliyun, { bucket: 'pics', region: 'cn-beijing' }, /^$/],
    [qiniu, { bucket: 'pics', region: 'cn-east-1' }, /^"urlPrefix" is required/],
  ])('says what is wrong (%#)', (provider, options, words) => {
    const config = z.strictObject(provider.config.shape).parse(options)
    expect(provider.validate?.(config) ?? '').toMatch(words)
  })
})
