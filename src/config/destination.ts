import * as z from '../packages/zod.ts'
import { pictureSchema } from '../pictures/options.ts'
import { duration, keyTemplate, proxyAddress } from './values.ts'

const fullDestinationName = z
  .string()
  .regex(/^[^/]+\/.+$/s, 'a destination is written "provider/configName" here')

function isRegExp(text: string): boolean {
  try {
    new RegExp(text)
    return true
  } catch {
    return false
  }
}

/** Options every saved configuration of every provider has beside the provider's own. */
export const destinationSchema = z.strictObject({
  keyTemplate: keyTemplate.optional(),
  onConflict: z
    .enum(['replace', 'rename', 'error'])
    .optional()
    .describe(
      'What happens when the key is already there, from an upload that is over. Default: "replace" where the key template names the content or makes every key new, as {sha256-8}, {uuid} and {str-8} do; else "rename" where the provider can tell what is there.',
    ),
  dedupe: z
    .boolean()
    .default(false)
    .describe(
      'Answer with the link of a file of the same bytes when the history knows one that is still there.',
    ),
  urlRewrite: z
    .array(
      z.strictObject({
        from: z
          .string()
          .min(1)
          .refine(isRegExp, 'is no regular expression')
          .describe('Regular expression. One that takes longer than 100 ms is stopped, and changes nothing.'),
        to: z.string().describe('What takes the place of the match; $1 is its first group.'),
        flags: z
          .string()
          .regex(/^[gi]*$/, 'may hold "g" and "i"')
          .default('')
          .describe('"g": every match; "i": capitals or not.'),
      }),
    )
    .default([])
    .describe('Changes to the links of this destination, one after the other.'),
  link: z
    .enum(['direct', 'redirect'])
    .default('direct')
    .describe(
      'Where links lead: to the destination, or (redirect) to this server, which sends visitors on to a signed address of a private store. That needs a destination that can sign addresses.',
    ),
  linkAccess: z
    .enum(['anyone', 'callers'])
    .default('anyone')
    .describe('Whom such links are for: whoever has one, or who may upload.'),
  fallback: fullDestinationName
    .optional()
    .describe(
      'Destination that is used when this one fails after its retries. A refusal by onConflict is no failure.',
    ),
  mirrors: z
    .array(
      z.union([
        fullDestinationName.transform(destination => ({ destination, required: false })),
        z.strictObject({
          destination: fullDestinationName,
          required: z.boolean().default(false).describe('Whether the upload fails when this copy does.'),
        }),
      ]),
    )
    .default([])
    .describe('Destinations that get a copy of every file.'),
  proxy: proxyAddress()
    .optional()
    .describe(
      'Proxy for this destination, in the place of all that "network.proxy" and "network.noProxy" say.',
    ),
  expiry: z
    .strictObject({
      default: z
        .union([duration(), z.literal('never')])
        .optional()
        .describe('After which time files go when a request says nothing, or "never". Default: `most`.'),
      most: duration().optional().describe('For how long a request may have files stay.'),
    })
    .refine(rule => rule.default !== undefined || rule.most !== undefined, 'needs "default" or "most"')
    .refine(
      ({ default: standard = 0, most }) => most === undefined || (standard !== 'never' && standard <= most),
      'has a "default" beyond its "most"',
    )
    .optional()
    .describe(
      'Files go again: after this time they are removed, with all copies. Default: they stay, and no request can have them go.',
    ),
  pictures: pictureSchema
    .optional()
    .describe('What is done to pictures, in the place of all that the setting "pictures" says.'),
})
