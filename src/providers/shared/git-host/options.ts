import { secret, size, text, webUrl } from '../../../options.ts'
import * as z from '../../../packages/zod.ts'
import { urlPrefix, withoutSlash } from '../public-url.ts'

/** Options of every Git host. Spread them into the provider's `config`. */
export const gitOptions = {
  branch: z
    .string()
    .regex(/^[^\s~^:?*[\\]+$/, 'must be a valid branch name')
    .default('main')
    .describe('Branch to commit files to.'),
  token: secret().describe('Access token with write access to the repository.'),
  commitMessage: text()
    .refine(
      text => !/\{(?!(?:filename|key)\})/.test(text),
      'has an unknown placeholder. Available: {filename}, {key}',
    )
    .default('Upload {filename}')
    .describe('Commit message. Placeholders: {filename} (file name) and {key} (path in the repository).'),
  authorName: text().optional().describe('Name of the commit author. Default: the owner of the token.'),
  authorEmail: z
    .email()
    .optional()
    .describe('E-mail address of the commit author. Required with "authorName".'),
  urlPrefix: urlPrefix()
    .optional()
    .describe(
      'Public base URL of the files in the branch; object keys are appended. Default: the URL of the Git host itself.',
    ),
  fileSize: size()
    .prefault('100MB')
    .describe(
      'Maximum size of one file, such as "100MB". Larger files are rejected before anything is sent.',
    ),
}

/** Options of every Git host, checked. */
export type GitOptions = z.output<z.ZodObject<typeof gitOptions>> & {
  readonly apiUrl: string
  readonly repo: string
}

/** Option for a repository, `owner/name`. */
export function repoName() {
  return z.string().regex(/^[^\s/?#%\\]+\/[^\s/?#%\\]+$/, 'must be "owner/name", not a URL')
}

/**
 * Option for the base URL of a Git host's API.
 *
 * @param path required end of the URL, which people tend to forget
 */
export function apiUrl(path = '') {
  return webUrl()
    .overwrite(withoutSlash)
    .refine(
      url => url.endsWith(path) && !/[?#]/.test(url),
      `must ${path && `end with ${path} and `}not have a query`,
    )
}
