import { createHttpClient, httpOptions } from '../../http/client.ts'
import { secret } from '../../options.ts'
import * as z from '../../packages/zod.ts'
import { defineProvider, type ProviderDeps, type Target } from '../contract.ts'
import { readAddress, readFolder, readText } from '../shared/picgo-options.ts'
import { joinUrl, toUrlSuffix, urlPrefix, urlSuffix } from '../shared/public-url.ts'
import { createBucket } from './bucket.ts'
import { addToken } from './sign.ts'

/** Name of a file that nobody has. */
const PROBE = 'upload-server-probe-0b1d6d2e'

const config = z.object({
  bucket: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]*$/, 'must be the name of a storage service')
    .describe('Name of the storage service.'),
  operator: z
    .string()
    .regex(/^[^\s:]+$/, 'must be the name of an operator')
    .describe('Operator who may write to it.'),
  password: secret().describe('Password of the operator.'),
  endpoint: urlPrefix()
    .default('https://v0.api.upyun.com')
    .describe('Address of the REST API. v1 to v3 are for single networks.'),
  urlPrefix: urlPrefix().describe(
    'Address below which visitors find the files: a domain bound to the service.',
  ),
  urlSuffix: urlSuffix().optional().describe('Appended to every URL, such as "!thumb".'),
  antiLeechToken: secret()
    .optional()
    .describe('Key of the token protection ("Token 防盗链") of the domain. URLs then work for a while only.'),
  antiLeechForS: z
    .number()
    .int()
    .min(1)
    .default(1800)
    .describe('How long URLs with a token work. Seconds, 30 minutes by default.'),
  ...httpOptions,
})

/** Upyun (又拍云) by its REST API. Its S3 interface is a preset of "s3". */
export const upyun = defineProvider({
  type: 'upyun',
  about: {
    family: 'bucket',
    what: "Upyun's REST API",
    testedAgainst: 'documented exchanges',
    example: {
      blog: {
        bucket: 'my-pictures',
        operator: 'uploader',
        password: 'UPYUN_PASSWORD',
        urlPrefix: 'https://img.example.com',
        urlSuffix: '!thumb',
      },
      protected: {
        bucket: 'my-pictures',
        operator: 'uploader',
        password: 'UPYUN_PASSWORD',
        urlPrefix: 'https://private.example.com',
        antiLeechToken: 'UPYUN_TOKEN',
        antiLeechForS: 3600,
      },
    },
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
  open,
  fromPicGo,
})

function open(options: z.output<typeof config>, deps: ProviderDeps): Target {
  const client = createHttpClient(options, deps)
  const bucket = createBucket(joinUrl(options.endpoint, options.bucket), options, client)

  const { antiLeechToken: token, antiLeechForS } = options

  function urlOf(key: string, forS = antiLeechForS): string {
    const url = joinUrl(options.urlPrefix, key) + (options.urlSuffix ?? '')
    return token === undefined ? url : addToken(url, token, Math.floor(Date.now() / 1000) + forS)
  }

  return {
    async put(object, signal) {
      await bucket.put(object, signal)
      return { url: urlOf(object.key) }
    },
    linksEnd: token !== undefined,
    // The method is not signed.
    ...(token !== undefined && {
      async sign(key, _method, mostS) {
        const forS = Math.min(antiLeechForS, mostS)
        return { url: urlOf(key, forS), forS }
      },
    }),
    check: signal => bucket.probe(PROBE, signal),
    exists: bucket.exists,
    remove: bucket.remove,
    async close() {
      client.close()
    },
  }
}

function fromPicGo(options: Record<string, unknown>) {
  const notes: string[] = []
  const endpoint = readText(options['endpoint'])
  const expireTime = Math.floor(Number(options['expireTime']))
  return {
    options: {
      bucket: readText(options['bucket']),
      operator: readText(options['operator']),
      password: readText(options['password']),
      endpoint: endpoint && (/^https?:\/\//i.test(endpoint) ? endpoint : `https://${endpoint}`),
      urlPrefix: readAddress(options['url'], notes, 'url'),
      urlSuffix: toUrlSuffix(readText(options['options'])),
      antiLeechToken: readText(options['antiLeechToken']),
      antiLeechForS: expireTime > 0 ? expireTime : undefined,
      keyTemplate: readFolder(options['path'], notes),
    },
    notes,
  }
}
