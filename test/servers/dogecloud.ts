import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { listen } from '../helpers/listen.ts'
import type { S3Keys } from './s3-admin.ts'

export interface DogeCloud {
  /** Address of an API whose keys are for a bucket behind an endpoint. */
  apiFor(endpoint: string): string
  /** How often keys were given. */
  readonly given: number
  close(): Promise<void>
}

/**
 * Gives temporary keys as DogeCloud documents it (docs.dogecloud.com: "API 鉴权", "临时密钥"), on 127.0.0.1.
 *
 * @param keys of the account, which are those of the bucket, too
 * @param ttlS seconds for which they are said to be good
 */
export async function startDogeCloud(keys: S3Keys, ttlS = 7200, sessionToken = ''): Promise<DogeCloud> {
  let given = 0
  const server = createServer(async (request, response) => {
    const [, endpoint = '', ...path] = (request.url ?? '').split('/')
    const body = await text(request)
    const say = (code: number, msg: string, data?: unknown) =>
      response.writeHead(code).end(JSON.stringify({ code, msg, ...(data !== undefined && { data }) }))
    const signature = createHmac('sha1', keys.secretAccessKey)
      .update(`/${path.join('/')}\n${body}`)
      .digest('hex')
    if (request.headers.authorization !== `TOKEN ${keys.accessKeyId}:${signature}`)
      return say(401, 'AccessToken 不正确')
    const { channel, scopes } = JSON.parse(body)
    const [name, rest] = String(scopes[0]).split(':')
    if (channel !== 'OSS_FULL' || rest !== '*') return say(400, '参数错误')
    given++
    const { accessKeyId, secretAccessKey } = keys
    say(200, 'OK', {
      Credentials: { accessKeyId, secretAccessKey, sessionToken },
      ExpiredAt: Math.floor(Date.now() / 1000) + ttlS,
      Buckets: [{ name, s3Bucket: name, s3Endpoint: decodeURIComponent(endpoint) }],
    })
  })
  const { url, close } = await listen(server)
  return {
    apiFor: endpoint => `${url}/${encodeURIComponent(endpoint)}`,
    get given() {
      return given
    },
    close,
  }
}
