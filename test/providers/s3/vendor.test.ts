import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { aliyun } from '../../../src/providers/aliyun.ts'
import type { Provider } from '../../../src/providers/contract.ts'
import { qiniu } from '../../../src/providers/qiniu.ts'
import { tcyun } from '../../../src/providers/tcyun.ts'
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

describe('a vendor of its own id', () => {
  it.each<[Provider, Options, Options]>([
    [
      aliyun,
      {
        accessKeyId: 'AK',
        accessKeySecret: 's',
        bucket: 'pics',
        area: 'oss-cn-beijing',
        path: 'img/',
        customUrl: `${BASE}/`,
        options: '!small',
      },
      {
        accessKeyId: 'AK',
        secretAccessKey: 's',
        bucket: 'pics',
        region: 'cn-beijing',
        path: 'img',
        urlPrefix: BASE,
        urlSuffix: '!small',
      },
    ],
    [
      tcyun,
      {
        secretId: 'AK',
        secretKey: 's',
        bucket: 'pics',
        appId: '125',
        area: 'gz',
        version: 'v4',
        path: '',
        customUrl: BASE,
        options: '',
        slim: false,
      },
      {
        accessKeyId: 'AK',
        secretAccessKey: 's',
        bucket: 'pics-125',
        region: 'ap-guangzhou',
        urlPrefix: BASE,
      },
    ],
    [
      qiniu,
      {
        accessKey: 'AK',
        secretKey: 's',
        bucket: 'pics',
        area: 'z1',
        url: 'img.example.com',
        options: '?imageslim',
        path: '',
      },
      {
        accessKeyId: 'AK',
        secretAccessKey: 's',
        bucket: 'pics',
        region: 'cn-north-1',
        urlPrefix: BASE,
        urlSuffix: '?imageslim',
      },
    ],
  ])('takes PicGo’s names and ours for the same (%#)', async (provider, theirs, ours) => {
    const by = await put(provider, theirs)
    expect(by).toEqual(await put(provider, ours))
    const folder = ours['path'] ? `${ours['path']}/` : ''
    expect(by).toEqual({
      path: `/${ours['bucket']}/${folder}a%20b.png`,
      scope: `AK/${ours['region']}/s3/aws4_request`,
      url: `${BASE}/${folder}a%20b.png${ours['urlSuffix'] ?? ''}`,
    })
  })

  it('signs URLs at qiniu', async () => {
    const keys = { accessKey: 'AK', secretKey: 's', bucket: 'pics', area: 'z0' }
    expect((await put(qiniu, { ...keys, linkType: 'presigned' })).url).toContain('X-Amz-Signature=')
  })

  it.each<[Provider, Options, RegExp]>([
    [
      aliyun,
      { bucket: 'pics', area: 'oss-cn-beijing', region: 'cn-beijing' },
      /^"area" and "region" are the same option/,
    ],
    [aliyun, { bucket: 'pics' }, /^"region" is required/],
    [aliyun, { bucket: 'pics', area: 'oss-cn-beijing', accessKeyId: 'A' }, /Set both/],
    [aliyun, { bucket: 'pics', area: 'oss-cn-beijing', options: '?"' }, /^$/],
    [
      tcyun,
      { bucket: 'pics', area: 'ap-guangzhou', endpoint: 'ftp://x' },
      /^"endpoint" is wrong: must be a host/,
    ],
    [qiniu, { bucket: 'pics', area: 'z0' }, /^"urlPrefix" is required/],
    [qiniu, { bucket: 'pics', area: 'z0', url: 'http://' }, /^"urlPrefix" is required/],
  ])('says what is wrong (%#)', (provider, options, words) => {
    const config = z.strictObject(provider.config.shape).parse(options)
    expect(provider.validate?.(config) ?? '').toMatch(words)
  })

  it('knows no options but its own, ours and PicGo’s', () => {
    for (const provider of [aliyun, tcyun, qiniu]) {
      const schema = z.strictObject(provider.config.shape)
      expect(schema.safeParse({ bucket: 'pics', preset: 'aws' }).success).toBe(false)
      for (const [name, option] of Object.entries(provider.config.shape)) {
        expect((option as z.ZodType).description, name).toMatch(/^[A-Z].*[.…]$/)
      }
    }
  })
})
