import { httpOptions } from '../../../http/client.ts'
import { secret } from '../../../options.ts'
import * as z from '../../../packages/zod.ts'
import { urlPrefix, withoutSlash } from '../public-url.ts'

const MIB = 1024 * 1024

/** Options of every forge; spread them into the provider's `config`. */
export const contentsOptions = {
  branch: z
    .string()
    .regex(/^[^\s~^:?*[\\]+$/, 'must be the name of a branch')
    .default('main')
    .describe('Branch that files are committed to.'),
  token: secret().describe('Access token that may write to the repository.'),
  commitMessage: z
    .string()
    .min(1)
    .refine(
      text => !/\{(?!(?:filename|key)\})/.test(text),
      'has an unknown placeholder; known are {filename} {key}',
    )
    .default('Upload {filename}')
    .describe('Message of commits. {filename} is the name of the file, {key} its path in the repository.'),
  authorName: z.string().min(1).optional().describe("Author of commits. Default: the token's owner."),
  authorEmail: z.email().optional().describe('E-mail address of the author; goes with "authorName".'),
  urlPrefix: urlPrefix()
    .optional()
    .describe(
      'Address at which files of the branch are handed out; keys are appended. Default: that of the forge itself.',
    ),
  ...httpOptions,
}

export interface ContentsOptions {
  readonly repo: string
  readonly branch: string
  readonly token: string
  readonly commitMessage: string
  readonly authorName?: string | undefined
  readonly authorEmail?: string | undefined
  readonly urlPrefix?: string | undefined
  readonly maxBytes: number
  readonly caFile?: string | undefined
  readonly insecureTls: boolean
}

/** `owner/name`, as an option. */
export function repoName() {
  return z.string().regex(/^[^\s/?#%\\]+\/[^\s/?#%\\]+$/, 'must be "owner/name", without an address')
}

/**
 * Where a forge's API begins, as an option.
 *
 * @param path the end of every such address: people forget it
 */
export function apiUrl(path = '') {
  return z
    .url({ protocol: /^https?$/, error: 'must be an http or https address' })
    .overwrite(withoutSlash)
    .refine(
      url => url.endsWith(path) && !/[?#]/.test(url),
      `must ${path && `end with ${path} and `}have no query`,
    )
}

/** Size limit of a forge, as an option. */
export function maxBytes(mebibytes: number) {
  return z
    .number()
    .int()
    .positive()
    .default(mebibytes * MIB)
    .describe(`Bytes. Larger files are refused before anything is sent. Default: ${mebibytes} MiB.`)
}

/** What is wrong with options that are valid one by one, in every forge. */
export function findContradiction(options: Pick<ContentsOptions, 'authorName' | 'authorEmail'>) {
  const hasBoth = (options.authorName === undefined) === (options.authorEmail === undefined)
  return hasBoth ? undefined : 'Give both "authorName" and "authorEmail", or neither.'
}
