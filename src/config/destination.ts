import { ownFile, time } from '../options.ts'
import * as z from '../packages/zod.ts'
import { pictureSchema } from '../pictures/options.ts'
import { flag, keyTemplate, list, optional, proxyAddress } from './values.ts'

const fullDestinationName = z
  .string()
  .regex(/^[^/]+\/.+$/s, 'must be a destination, written "provider/configName"')

const lifetime = () => time(1, Number.MAX_SAFE_INTEGER)

export function isRegExp(text: string): boolean {
  try {
    new RegExp(text)
    return true
  } catch {
    return false
  }
}

/** Options that every destination has in addition to those of its provider. */
export const destinationSchema = z.strictObject({
  keyTemplate: keyTemplate.optional(),
  onConflict: optional(
    z.enum(['replace', 'rename', 'error']),
    'What to do when the object key already exists: overwrite the object, add a numeric suffix to the new key ("-2"), or fail. Default: "rename" if the provider can check what exists, or if the key template has at least 8 digits of a hash or a random part; otherwise "replace".',
  ),
  dedupe: flag(
    false,
    'Reuse the link of an identical file that this server has stored here and that still exists, instead of storing it again.',
  ),
  urlRewrite: list(
    z.strictObject({
      from: z
        .string()
        .min(1)
        .refine(isRegExp, 'is not a valid regular expression')
        .describe('Regular expression to search for. Links of more than 8192 characters stay unchanged.'),
      to: z.string().describe('Replacement for the match. $1 inserts the first group.'),
      flags: z
        .string()
        .regex(/^[gi]*$/, 'may contain only "g" and "i"')
        .default('')
        .describe('Flags of the expression. "g": replace every match; "i": case-insensitive.'),
    }),
    'Rewrite rules for the links of this destination, applied in order.',
  ),
  link: z
    .enum(['direct', 'redirect'])
    .default('direct')
    .describe(
      'Target of links: the destination ("direct"), or this server, which redirects to a new presigned URL of a private bucket ("redirect").',
    ),
  linkAccess: z
    .enum(['anyone', 'callers'])
    .default('anyone')
    .describe(
      'Who may open redirect links: "anyone" with the link, or only "callers": clients that may upload to this destination.',
    ),
  fallback: optional(
    fullDestinationName,
    'Destination to use if this one fails, after its retries. An upload that onConflict rejects is not stored at the fallback.',
  ),
  mirrors: list(
    z.union([
      fullDestinationName.transform(destination => ({ destination, required: false })),
      z.strictObject({
        destination: fullDestinationName,
        required: flag(
          false,
          'Fail the upload if this copy cannot be stored. If false, the failure is logged and reported in the response.',
        ),
      }),
    ]),
    'Destinations that store a copy of every file: "provider/configName", or an object with `destination` and `required`.',
  ),
  proxy: optional(
    proxyAddress(),
    'Outbound proxy for this destination, instead of "network.proxy" and "network.noProxy": a proxy URL, "environment" or "none".',
  ),
  caFile: optional(
    ownFile(),
    'PEM file with CA certificates to trust for this destination, in addition to those of "network.caFile" and the built-in ones. Not for "local" and "command".',
  ),
  insecureTls: flag(
    false,
    'Disable the verification of TLS certificates of this destination. Anyone on the network path can then read and modify the traffic. Not for "local" and "command".',
  ),
  expiry: optional(
    z
      .strictObject({
        default: optional(
          z.union([lifetime(), z.literal('never')]),
          'Time to live of files whose upload does not set `expires`, such as "30d", or "never". Default: the value of `max`.',
        ),
        max: optional(
          lifetime(),
          'Maximum time to live that an upload may ask for with `expires`, such as "90d". Default: unlimited.',
        ),
      })
      .refine(rule => rule.default !== undefined || rule.max !== undefined, 'needs "default" or "max"')
      .refine(
        ({ default: standard = 0, max }) => max === undefined || standard === 'never' || standard <= max,
        'has a "default" that is longer than its "max"',
      ),
    'Expiry of files at this destination. Expired files are deleted, together with their copies at mirrors and fallbacks. Default: files never expire, and uploads may not set `expires`.',
  ),
  images: optional(
    pictureSchema,
    'Image processing at this destination. Replaces the general setting "images" completely.',
  ),
})
