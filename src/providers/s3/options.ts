import { httpOptions } from '../../http/client.ts'
import { secret } from '../../options.ts'
import * as z from '../../packages/zod.ts'
import { urlPrefix, urlSuffix } from '../shared/public-url.ts'
import { cleanRelative } from '../shared/remote-path.ts'
import { PRESET_NAMES } from './presets.ts'

const MIB = 1024 * 1024
/** Limits of S3 itself: a single put takes 5 GiB, a part of more of them has at least 5 MiB. */
const LARGEST_PUT = 5 * 1024 * MIB
const SMALLEST_PART = 5 * MIB

const name = () => z.string().trim().min(1)

/** Text for a header: what Node refuses there would fail at the first upload only. */
const header = () => z.string().regex(/^[\x20-\x7e]+$/, 'must consist of printable ASCII characters')

/** The address of an API, with or without scheme; https is assumed. */
const endpoint = () =>
  name().refine(
    value => parseEndpoint(value) !== undefined,
    'must be a host such as "s3.example.com:9000", or an http or https address without query',
  )

const folder = () =>
  z
    .string()
    .refine(
      value => !cleanRelative(value).split('/').some(isDots),
      'must be a folder without "." and ".." such as "img/blog"',
    )

const isDots = (segment: string): boolean => segment === '.' || segment === '..'

/** Options that do not depend on the vendor. */
export const bucketOptions = {
  bucket: name().describe('Name of the bucket, which has to be there.'),
  endpoint: endpoint()
    .optional()
    .describe(
      'Address of the S3 API, when it is not the one of the preset: https unless it says http://, may have a path.',
    ),
  region: name().optional().describe('Region of the bucket; requests are signed for it.'),
  accessKeyId: name()
    .optional()
    .describe(
      'Access key id. Without keys the environment is asked as AWS does: variables, ~/.aws, roles of EC2, ECS and EKS.',
    ),
  secretAccessKey: secret().optional().describe('Secret that belongs to accessKeyId.'),
  sessionToken: secret().optional().describe('Third part of temporary credentials.'),
  addressingStyle: z
    .enum(['virtual', 'path', 'cname'])
    .optional()
    .describe(
      'Where the bucket is named: in the host, in the path, or (cname) the endpoint is its own domain.',
    ),
  path: folder().optional().describe('Folder in the bucket, put in front of every key.'),
  urlPrefix: urlPrefix()
    .optional()
    .describe('Address below which visitors find the objects, such as a CDN. Default: see the presets.'),
  webPath: folder()
    .optional()
    .describe('Folder that stands in URLs instead of "path"; "" when the domain leads into the folder.'),
  urlSuffix: urlSuffix().optional().describe('Appended to every URL, such as "?x-oss-process=style/small".'),
  url: z
    .enum(['public', 'presigned'])
    .default('public')
    .describe('Answer with plain URLs, or with signed ones that open a private bucket for a while.'),
  presignedForS: z
    .number()
    .int()
    .min(1)
    .max(604_800)
    .default(604_800)
    .describe(
      'How long presigned URLs work. Seconds, 7 days at most; with temporary credentials they end with these.',
    ),
  acl: z
    .enum([
      ...['private', 'public-read', 'public-read-write', 'authenticated-read'],
      ...['aws-exec-read', 'bucket-owner-read', 'bucket-owner-full-control'],
    ] as const)
    .optional()
    .describe('Canned ACL of every object. Sent only when set; new buckets of AWS refuse it.'),
  storageClass: header()
    .optional()
    .describe(
      'Storage class, in the words of the vendor, such as "STANDARD_IA". Default: that of the bucket.',
    ),
  cacheControl: header()
    .optional()
    .describe(
      'Cache-Control of every object. Default: "public, max-age=86400", with presigned URLs "private, …".',
    ),
  contentDisposition: header()
    .default('inline')
    .describe('Content-Disposition of every object: "inline" shows it, "attachment" downloads it.'),
  serverSideEncryption: z
    .enum(['AES256', 'aws:kms', 'aws:kms:dsse'])
    .optional()
    .describe('Encryption with keys of the vendor.'),
  sseKmsKeyId: header()
    .optional()
    .describe('Key for serverSideEncryption with KMS. Default: the one of the account.'),
  multipartThreshold: z
    .number()
    .int()
    .min(SMALLEST_PART)
    .max(LARGEST_PUT)
    .default(64 * MIB)
    .describe('Larger objects are sent in parts. Bytes.'),
  partSize: z
    .number()
    .int()
    .min(SMALLEST_PART)
    .max(512 * MIB)
    .default(SMALLEST_PART)
    .describe('Size of a part, of which two are sent at once. Bytes.'),
  ...httpOptions,
}

export const s3Options = {
  preset: z
    .enum(PRESET_NAMES)
    .optional()
    .describe('Vendor. Default: recognised by the endpoint, else "custom"; without endpoint "aws".'),
  accountId: name()
    .optional()
    .describe('Account id of Cloudflare or namespace of Oracle, a part of the endpoint.'),
  ...bucketOptions,
}

const schema = z.object(s3Options)

export type S3Options = z.output<typeof schema>

/** The address of an API as a URL, https unless it says otherwise; undefined when it is none. */
export function parseEndpoint(value: string): URL | undefined {
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? value : `https://${value}`
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash || url.username) return undefined
  // "https://http://host" is a host called "http" with an empty port.
  return /^https?$/.test(url.hostname) ? undefined : url
}
