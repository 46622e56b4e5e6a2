import { secret, time } from '../../options.ts'
import * as z from '../../packages/zod.ts'
import { type Context, defineProvider, type Target } from '../contract.ts'
import { findDoubledName, joinUrl, urlPrefix, urlSuffix } from '../shared/public-url.ts'
import { createBucket } from './bucket.ts'
import { addToken } from './sign.ts'

const TEN_YEARS_MS = 10 * 365 * 86_400_000

/** Name of a file that does not exist in any bucket. */
const PROBE = 'upload-server-probe-0b1d6d2e'

const config = z.object({
  bucket: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]*$/, 'must be the name of a storage service')
    .describe('Name of the storage service.'),
  operator: z
    .string()
    .regex(/^[^\s:]+$/, 'must be the name of an operator')
    .describe('Operator with write access to the storage service.'),
  password: secret().describe('Password of the operator.'),
  endpoint: urlPrefix()
    .default('https://v0.api.upyun.com')
    .describe('URL of the REST API. The hosts v1 to v3 serve one Chinese carrier each.'),
  urlPrefix: urlPrefix().describe('Public base URL of the files: a domain bound to the storage service.'),
  urlSuffix: urlSuffix().optional().describe('Text appended to every URL, such as "!thumb".'),
  antiLeechToken: secret()
    .optional()
    .describe(
      'Secret of the domain\'s token protection ("Token 防盗链"). If set, URLs are signed and expire.',
    ),
  antiLeechFor: time(1000, TEN_YEARS_MS)
    .prefault('30m')
    .describe('Lifetime of URLs with a token, such as "1h".'),
})

/** Upyun (又拍云) through its REST API. Its S3 API is a preset of "s3". */
export const upyun = defineProvider({
  type: 'upyun',
  about: {
    family: 'bucket',
    what: "Upyun's REST API",
    testedAgainst: 'a mock of the documented API',
    signs: 'antiLeechToken',
    choices: [
      {
        label: 'Upyun · 又拍云',
        asks: ['bucket', 'operator', 'password', 'urlPrefix'],
        where: 'the console, 账户管理 → 操作员.',
      },
    ],
  },
  config,
  validate: ({ endpoint, bucket }) => findDoubledName(endpoint, 'bucket', bucket),
  open,
  picgo(old) {
    const endpoint = old.text('endpoint')
    const expiresS = Math.floor(Number(old.text('expireTime')))
    return {
      bucket: old.text('bucket'),
      operator: old.text('operator'),
      password: old.text('password'),
      endpoint: endpoint && (/^https?:\/\//i.test(endpoint) ? endpoint : `https://${endpoint}`),
      urlPrefix: old.url('url'),
      urlSuffix: old.suffix('options'),
      antiLeechToken: old.text('antiLeechToken'),
      // A duration has at most six digits.
      antiLeechFor: expiresS > 0 ? `${Math.min(Math.ceil(expiresS / 60), 999_999)}m` : undefined,
      keyTemplate: old.template(old.text('path')),
    }
  },
})

function open(options: z.output<typeof config>, { http }: Context): Target {
  const bucket = createBucket(joinUrl(options.endpoint, options.bucket), options, http)

  const { antiLeechToken: token } = options
  const lifetimeS = Math.floor(options.antiLeechFor / 1000)

  function urlOf(key: string, forS = lifetimeS): string {
    const url = joinUrl(options.urlPrefix, key) + (options.urlSuffix ?? '')
    return token === undefined ? url : addToken(url, token, Math.floor(Date.now() / 1000) + forS)
  }

  return {
    // All endpoints reach the same storage services through different networks.
    location: `upyun:${options.bucket}/`,
    async put(object, signal) {
      await bucket.put(object, signal)
      return { url: urlOf(object.key) }
    },
    traits: { linksExpire: token !== undefined },
    // The token does not depend on the method.
    ...(token !== undefined && {
      async sign(key, _method, mostS) {
        const forS = Math.min(lifetimeS, mostS)
        return { url: urlOf(key, forS), forS }
      },
    }),
    check: signal => bucket.probe(PROBE, signal),
    exists: bucket.exists,
    remove: bucket.remove,
  }
}
