import { createHmac } from 'node:crypto'
import { createCanceller, orAborted } from '../flow/cancellation.ts'
import type { HttpClient } from '../http/client.ts'
import { excerpt } from '../http/excerpt.ts'
import { secret } from '../options.ts'
import * as z from '../packages/zod.ts'
import { Problem } from '../problem.ts'
import { type Context, defineProvider, type Target } from './contract.ts'
import { bucketOptions, s3Options } from './s3/options.ts'
import { requireSettings } from './s3/settings.ts'
import { openS3 } from './s3/target.ts'
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

interface Session {
  readonly target: Target
  /** Time at which the access keys expire, in milliseconds since 1970. */
  readonly endsAt: number
}

function open(options: Options, context: Context): Target {
  let session: Promise<Session> | undefined

  async function begin(signal: AbortSignal): Promise<Session> {
    const { Credentials, ExpiredAt, Buckets } = await requestKeys(context.http, options, signal)
    const bucket = Buckets.find(one => one.name === options.bucket)
    if (!bucket)
      throw new Problem(`DogeCloud has no storage space "${options.bucket}" for this access key`, {
        advice: 'Check "bucket".',
      })
    const { urlPrefix, urlSuffix, path, cacheControl } = options
    const { accessKeyId, secretAccessKey, sessionToken } = Credentials
    context.learn?.([secretAccessKey, sessionToken])
    const settings = requireSettings(
      z.object(s3Options).parse({
        preset: 'custom',
        addressingStyle: 'virtual',
        region: 'automatic',
        bucket: bucket.s3Bucket,
        endpoint: bucket.s3Endpoint,
        accessKeyId,
        secretAccessKey,
        sessionToken: sessionToken || undefined,
        urlPrefix,
        urlSuffix,
        path,
        cacheControl,
      }),
    )
    return { target: openS3('dogecloud', settings, context), endsAt: ExpiredAt * 1000 }
  }

  /** Returns the current session. Concurrent calls share one request for access keys. */
  async function current(signal: AbortSignal): Promise<Session> {
    const used = session
    const found = await used?.catch(() => undefined)
    if (found && Date.now() < found.endsAt - MARGIN_MS) return found
    const next = session === used || session === undefined ? begin(createCanceller().signal) : session
    session = next
    return orAborted(next, signal)
  }

  return {
    location: locationAt(
      'dogecloud',
      options.apiUrl,
      `${options.bucket}/${cleanRelative(options.path ?? '')}`,
    ),
    put: async (object, signal) => (await current(signal)).target.put(object, signal),
    check: async signal => (await current(signal)).target.check?.(signal),
    exists: async (key, signal) => Boolean(await (await current(signal)).target.exists?.(key, signal)),
    remove: async (key, signal) => (await current(signal)).target.remove?.(key, signal),
    async sign(key, method, mostS, signal) {
      const { target, endsAt } = await current(signal)
      const leftS = Math.floor((endsAt - Date.now()) / 1000)
      const signed = await target.sign?.(key, method, Math.min(mostS, leftS), signal)
      if (!signed) throw new Problem('DogeCloud does not support signed URLs')
      return signed
    },
    async close() {
      const last = await session?.catch(() => undefined)
      await last?.target.close?.()
    },
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
