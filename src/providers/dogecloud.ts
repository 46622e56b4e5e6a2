import { createHmac } from 'node:crypto'
import { createCanceller, orAborted } from '../flow/cancellation.ts'
import type { HttpClient } from '../http/client.ts'
import { excerpt } from '../http/excerpt.ts'
import { secret } from '../options.ts'
import * as z from '../packages/zod.ts'
import { Problem } from '../problem.ts'
import { type Context, defineProvider, type Target } from './contract.ts'
import type { S3Access } from './s3/client.ts'
import { openS3 } from './s3/index.ts'
import { bucketOptions, parseEndpoint, s3Options } from './s3/options.ts'
import { bucketUrl } from './s3/settings.ts'
import { locationAt } from './shared/location.ts'
import { urlPrefix, urlSuffix, withoutSlash } from './shared/public-url.ts'
import { cleanRelative } from './shared/remote-path.ts'

const API_PATH = '/auth/tmp_token.json'
/** Minimum remaining lifetime of access keys that are used, in milliseconds, because a large file takes some minutes. */
const MARGIN_MS = 15 * 60_000

const config = z.object({
  accessKey: z.string().min(1).describe('AccessKey of the account.'),
  secretKey: secret().describe('SecretKey that belongs to "accessKey".'),
  bucket: z.string().min(1).describe('Name of the storage space, as the console shows it.'),
  urlPrefix: urlPrefix().describe('Public base URL of the files: a domain bound to the storage space.'),
  urlSuffix: urlSuffix().optional(),
  path: bucketOptions.path,
  cacheControl: bucketOptions.cacheControl,
  apiUrl: urlPrefix()
    .default('https://api.dogecloud.com')
    .describe('URL of the API that issues temporary access keys.'),
})

type Options = z.output<typeof config>

const answer = z.object({
  code: z.number(),
  msg: z.string().optional(),
  data: z
    .object({
      Credentials: z.object({
        accessKeyId: z.string().min(1),
        secretAccessKey: z.string().min(1),
        sessionToken: z.string(),
      }),
      /** Time in seconds since 1970. */
      ExpiredAt: z.number(),
      Buckets: z.array(z.object({ name: z.string(), s3Bucket: z.string(), s3Endpoint: z.string() })),
    })
    .nullish()
    .catch(undefined),
})

/**
 * DogeCloud: S3 with temporary access keys that expire after 2 hours and are then requested again (docs.dogecloud.com:
 * "API 鉴权", "临时密钥").
 */
export const dogecloud = defineProvider({
  type: 'dogecloud',
  about: {
    family: 'bucket',
    what: 'DogeCloud, with temporary access keys',
    testedAgainst: 'Ceph radosgw; a mock for the temporary access keys',
    signs: true,
    choices: [
      {
        label: 'DogeCloud · 多吉云',
        asks: ['accessKey', 'secretKey', 'bucket', 'urlPrefix'],
        where: 'the console, 用户中心 → 密钥管理.',
      },
    ],
  },
  config,
  open,
})

function open(options: Options, context: Context): Target {
  const { apiUrl, accessKey: _, secretKey: __, ...own } = options
  // Only the session knows the endpoint.
  const unknown = { endpoint: apiUrl, addressingStyle: 'cname', region: 'automatic', preset: 'custom' }
  let session: Promise<S3Access> | undefined

  async function begin(signal: AbortSignal): Promise<S3Access> {
    const { Credentials, ExpiredAt, Buckets } = await requestKeys(context.http, options, signal)
    const found = Buckets.find(({ name }) => name === options.bucket)
    const endpoint = parseEndpoint(found?.s3Endpoint ?? '')
    if (!found || !endpoint)
      throw new Problem(`DogeCloud has no storage space "${options.bucket}" for this access key`, {
        advice: 'Check "bucket".',
      })
    context.learn([Credentials.secretAccessKey, Credentials.sessionToken])
    return {
      bucketUrl: bucketUrl(withoutSlash(endpoint.href), found.s3Bucket, 'virtual'),
      credentials: { ...Credentials, expiration: new Date(ExpiredAt * 1000) },
    }
  }

  /** Returns the current session. Concurrent calls share one request for access keys. */
  async function current(signal?: AbortSignal): Promise<S3Access> {
    const used = session
    const found = await used?.catch(() => undefined)
    const endsAt = found?.credentials.expiration?.getTime() ?? 0
    if (found && Date.now() < endsAt - MARGIN_MS) return found
    if (session === used) session = begin(createCanceller().signal)
    const next = session as Promise<S3Access> // it was set now, or by another call
    return signal ? orAborted(next, signal) : next
  }

  return {
    ...openS3(z.object(s3Options).parse({ ...own, ...unknown }), context, current),
    location: locationAt('dogecloud', apiUrl, `${options.bucket}/${cleanRelative(options.path ?? '')}`),
  }
}

/** Requests temporary access keys. The signature covers the path and the body. */
async function requestKeys(
  client: HttpClient,
  { apiUrl, accessKey, secretKey, bucket }: Options,
  signal: AbortSignal,
): Promise<NonNullable<z.output<typeof answer>['data']>> {
  const body = JSON.stringify({ channel: 'OSS_FULL', scopes: [`${bucket}:*`] })
  const signature = createHmac('sha1', secretKey).update(`${API_PATH}\n${body}`).digest('hex')
  const reply = await client.send(
    {
      method: 'POST',
      url: withoutSlash(apiUrl) + API_PATH,
      headers: { 'Content-Type': 'application/json', Authorization: `TOKEN ${accessKey}:${signature}` },
      body,
      accept: status => status < 500 && status !== 429,
    },
    signal,
  )
  const { success, data: issued } = answer.safeParse(reply.text.startsWith('{') ? reply.json() : undefined)
  if (!success)
    throw new Problem('the response to the request for temporary access keys is not from DogeCloud', {
      advice: 'Check "apiUrl".',
    })
  if (issued.code !== 200 || !issued.data) {
    const why = `DogeCloud issued no temporary access keys: ${excerpt(issued.msg ?? 'no reason given')} (${issued.code})`
    throw new Problem(why, {
      advice: 'Check "accessKey", "secretKey" and "bucket".',
      retryable: issued.code >= 500,
    })
  }
  return issued.data
}
