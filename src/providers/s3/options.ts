import { headerValue, isPossibleHost, secret, size, time } from '../../options.ts'
import * as z from '../../packages/zod.ts'
import { urlPrefix, urlSuffix } from '../shared/public-url.ts'
import { plainFolder } from '../shared/remote-path.ts'
import { PRESET_NAMES } from './presets.ts'

const MIB = 1024 * 1024
/** Limits of S3: one PUT accepts at most 5 GiB, and a part that is not the last one has at least 5 MiB. */
const LARGEST_PUT = 5 * 1024 * MIB
const SMALLEST_PART = 5 * MIB

const name = () => z.string().trim().min(1)

/** Limit of Signature Version 4, in milliseconds. */
const MAX_PRESIGNED_MS = 7 * 86_400_000

/** Options that do not depend on the vendor. */
export const bucketOptions = {
  bucket: name().describe('Name of an existing bucket.'),
  endpoint: name()
    .refine(
      value => parseEndpoint(value) !== undefined,
      'must be a host such as "s3.example.com:9000", or an http or https URL without a query',
    )
    .optional()
    .describe(
      'URL of the S3 API, if it differs from that of the preset. May have a path. Default scheme: https.',
    ),
  region: name().optional().describe('Region of the bucket, used to sign requests.'),
  accessKeyId: name()
    .optional()
    .describe(
      'Access key ID. If unset, credentials are looked up as the AWS SDK does: environment variables, ~/.aws, then roles of EC2, ECS and EKS.',
    ),
  secretAccessKey: secret().optional().describe('Secret access key that belongs to "accessKeyId".'),
  sessionToken: secret().optional().describe('Session token of temporary credentials.'),
  addressingStyle: z
    .enum(['virtual', 'path', 'cname'])
    .optional()
    .describe(
      'Where requests name the bucket. "virtual": in the hostname. "path": in the URL path. "cname": nowhere, the endpoint is the domain of the bucket.',
    ),
  path: plainFolder().optional().describe('Folder in the bucket, prepended to every object key.'),
  urlPrefix: urlPrefix()
    .optional()
    .describe(
      'Public base URL of the objects, such as that of a CDN. Default: by preset, usually the URL of the bucket.',
    ),
  webPath: plainFolder()
    .optional()
    .describe(
      'Folder to use in URLs instead of "path". Set "" if the domain already points into the folder.',
    ),
  urlSuffix: urlSuffix()
    .optional()
    .describe('Text appended to every URL, such as "?x-oss-process=style/small".'),
  linkType: z
    .enum(['public', 'presigned'])
    .default('public')
    .describe(
      'Type of the returned URLs. "public": plain URLs. "presigned": signed URLs that expire, for a private bucket.',
    ),
  presignedFor: time(1000, MAX_PRESIGNED_MS)
    .prefault('7d')
    .describe(
      'Lifetime of presigned URLs, such as "12h". At most "7d". With temporary credentials, URLs expire with them.',
    ),
  acl: z
    .enum([
      'private',
      'public-read',
      'public-read-write',
      'authenticated-read',
      'aws-exec-read',
      'bucket-owner-read',
      'bucket-owner-full-control',
    ])
    .optional()
    .describe('Canned ACL of every object. Sent only if set; new AWS buckets reject ACLs.'),
  storageClass: headerValue()
    .optional()
    .describe(
      'Storage class of every object, as the vendor names it, such as "STANDARD_IA". Default: the class of the bucket.',
    ),
  cacheControl: headerValue()
    .optional()
    .describe(
      'Cache-Control header of every object. Default: "public, max-age=86400", or "private, max-age=86400" with presigned URLs.',
    ),
  contentDisposition: headerValue()
    .default('inline')
    .describe(
      'Content-Disposition header of every object. "inline": browsers show it. "attachment": browsers download it.',
    ),
  serverSideEncryption: z
    .enum(['AES256', 'aws:kms', 'aws:kms:dsse'])
    .optional()
    .describe('Server-side encryption of every object.'),
  sseKmsKeyId: headerValue()
    .optional()
    .describe(
      'ID of the KMS key for server-side encryption with KMS. Default: the default KMS key of the account.',
    ),
}

/** Options that only `s3` has, not its vendors. */
const partOptions = {
  multipartThreshold: size(SMALLEST_PART, LARGEST_PUT)
    .prefault('64MB')
    .describe('Size above which objects are sent as multipart uploads, such as "64MB".'),
  partSize: size(SMALLEST_PART, 512 * MIB)
    .prefault('5MB')
    .describe('Size of one part of a multipart upload, such as "5MB". Two parts are sent at a time.'),
}

export const s3Options = {
  preset: z
    .enum(PRESET_NAMES)
    .optional()
    .describe('Vendor. Default: detected from "endpoint", or else "custom"; without "endpoint", "aws".'),
  accountId: name().optional().describe('Cloudflare account ID or Oracle namespace. Part of the endpoint.'),
  ...bucketOptions,
  ...partOptions,
}

export const STANDARD_PARTS = z.object(partOptions).parse({})

const schema = z.object(s3Options)

export type S3Options = z.output<typeof schema>

/** Parses the URL of an API, whose default scheme is https. Undefined if it is invalid. */
export function parseEndpoint(value: string): URL | undefined {
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? value : `https://${value}`
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash || url.username) return undefined
  // "https://http://host" would be parsed as the hostname "http" with an empty port.
  return /^https?$/.test(url.hostname) || !isPossibleHost(url.hostname) ? undefined : url
}
