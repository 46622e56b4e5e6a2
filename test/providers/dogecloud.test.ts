import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { dogecloud } from '../../src/providers/dogecloud.ts'
import { failureOf } from '../helpers/failure-of.ts'
import { openHost } from '../helpers/http-exchange.ts'
import { objectOf } from '../helpers/provider-contract.ts'
import { startStubBucket } from '../helpers/stub-bucket.ts'
import { startDogeCloud } from '../servers/dogecloud.ts'

describe('temporary keys', () => {
  const keys = { accessKeyId: 'id', secretAccessKey: 'the-secret' }
  const never = () => new AbortController().signal

  async function open(ttlS: number) {
    const bucket = await startStubBucket()
    const api = await startDogeCloud(keys, ttlS, 'the-session')
    onTestFinished(api.close)
    const { endpoint, urlPrefix } = bucket.options as Record<string, string>
    const options = { accessKey: 'id', secretKey: 'the-secret', bucket: 'bucket', urlPrefix }
    const target = await openHost(dogecloud, { ...options, apiUrl: api.apiFor(endpoint ?? '') })
    onTestFinished(() => target.close?.())
    const put = (key: string) => target.put(objectOf(key, Buffer.from('x')), never())
    return { api, bucket, put, target, options }
  }

  it('are asked for once, also by files that come together', async () => {
    const { api, bucket, put, target } = await open(7200)
    await Promise.all(['a', 'b', 'c'].map(put))
    await put('d')
    expect([bucket.puts.length, api.given]).toEqual([4, 1])
    expect(await target.exists?.('d', never())).toBe(true)
    await target.remove?.('d', never())
    expect(await target.exists?.('d', never())).toBe(false)
    expect(target.location).toMatch(/^dogecloud:\/\/localhost:\d+\/.*bucket\/$/)
    const { url, forS } = (await target.sign?.('a', 'GET', 999_999, never())) ?? { url: '', forS: 0 }
    expect(new URL(url).searchParams.get('X-Amz-Security-Token')).toBe('the-session')
    expect(forS).toBeLessThanOrEqual(7200)
  })

  it('that end soon are asked for anew', async () => {
    const { api, put } = await open(60)
    await put('a')
    await put('b')
    expect(api.given).toBe(2)
  })

  it('attack: a refusal without end repeats the signature of the request', async () => {
    const server = createServer((request, response) => {
      const [, signature] = String(request.headers.authorization).split(':')
      response.end(JSON.stringify({ code: 401, msg: `签名 ${signature} 不正确 ${'x '.repeat(9999)}` }))
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const { options } = await open(7200)
    const apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const target = await openHost(dogecloud, { ...options, apiUrl })
    const { message } = await failureOf(target.check!(never()))
    expect(message).toMatch(/no temporary access keys: 签名 \[secret\] 不正确 x x (?:x )+x… \(401\)\. Check/)
    expect(message.length).toBeLessThan(500)
  })

  it('that are refused are said to be, and asked for again the next time', async () => {
    const { api, options } = await open(7200)
    const target = await openHost(dogecloud, { ...options, secretKey: 'another', apiUrl: api.apiFor('x') })
    for (let round = 0; round < 2; round++)
      await expect(target.check?.(never())).rejects.toThrow(
        'DogeCloud issued no temporary access keys: AccessToken 不正确 (401). Check "accessKey", "secretKey" and "bucket".',
      )
  })
})
