import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { dogecloud } from '../../src/providers/dogecloud.ts'
import { failureOf } from '../helpers/failure-of.ts'
import { play } from '../helpers/player.ts'
import { startStubBucket } from '../helpers/stub-bucket.ts'
import { never, open, put } from '../helpers/target.ts'

describe('temporary keys', () => {
  const account = { accessKey: 'id', secretKey: 'the-secret' }
  const own = { ...account, bucket: 'bucket', urlPrefix: 'https://img.example.com' }

  /** Gives temporary keys as DogeCloud documents it (docs.dogecloud.com: "API 鉴权", "临时密钥"). */
  async function start(ttlS: number) {
    const bucket = await startStubBucket()
    const { endpoint } = bucket.options
    const api = await play(({ url, text, headers }) => {
      const signature = createHmac('sha1', account.secretKey).update(`${url}\n${text}`).digest('hex')
      expect(headers['authorization']).toBe(`TOKEN id:${signature}`)
      expect(JSON.parse(text)).toEqual({ channel: 'OSS_FULL', scopes: ['bucket:*'] })
      const Credentials = { accessKeyId: 'id', secretAccessKey: 'temporary', sessionToken: 'the-session' }
      const Buckets = [{ name: 'bucket', s3Bucket: 'bucket', s3Endpoint: endpoint }]
      const ExpiredAt = Math.floor(Date.now() / 1000) + ttlS
      return { status: 200, body: { code: 200, msg: 'OK', data: { Credentials, ExpiredAt, Buckets } } }
    })
    return { api, bucket, target: await open(dogecloud, { ...own, apiUrl: api.url }) }
  }

  it('are asked for once, also by files that come together', async () => {
    const { api, bucket, target } = await start(7200)
    await Promise.all(['a', 'b', 'c'].map(key => put(target, key)))
    await put(target, 'd')
    expect(bucket.puts).toHaveLength(4)
    expect(api.lines()).toEqual(['POST /auth/tmp_token.json'])
    expect(await target.exists?.('d', never())).toBe(true)
    await target.remove?.('d', never())
    expect(await target.exists?.('d', never())).toBe(false)
    expect(target.location).toMatch(/^dogecloud:\/\/localhost:\d+\/.*bucket\/$/)
    const { url, forS } = (await target.sign?.('a', 'GET', 999_999, never())) ?? { url: '', forS: 0 }
    expect(new URL(url).searchParams.get('X-Amz-Security-Token')).toBe('the-session')
    expect(forS).toBeLessThanOrEqual(7200)
  })

  it('that end soon are asked for anew', async () => {
    const { api, target } = await start(60)
    await put(target, 'a')
    await put(target, 'b')
    expect(api.requests).toHaveLength(2)
  })

  it('attack: a refusal without end repeats the signature of the request', async () => {
    const { url: apiUrl } = await play(({ headers }) => {
      const [, signature] = String(headers['authorization']).split(':')
      return { status: 200, body: { code: 401, msg: `签名 ${signature} 不正确 ${'x '.repeat(9999)}` } }
    })
    const target = await open(dogecloud, { ...own, apiUrl })
    const { message } = await failureOf(put(target, 'a'))
    expect(message).toMatch(/no temporary access keys: 签名 \[secret\] 不正确 x x (?:x )+x… \(401\)\. Check/)
    expect(message.length).toBeLessThan(500)
  })

  it('that are refused are said to be, and asked for again the next time', async () => {
    const { url: apiUrl, requests } = await play({
      status: 401,
      body: { code: 401, msg: 'AccessToken 不正确' },
    })
    const target = await open(dogecloud, { ...own, apiUrl })
    for (let round = 0; round < 2; round++)
      await expect(target.check?.(never())).rejects.toThrow(
        'DogeCloud issued no temporary access keys: AccessToken 不正确 (401). Check "accessKey", "secretKey" and "bucket".',
      )
    expect(requests).toHaveLength(2)
  })
})
