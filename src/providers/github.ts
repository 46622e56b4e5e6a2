import * as z from '../packages/zod.ts'
import { contentsApi } from './shared/git-host/contents-api.ts'
import { gitHost } from './shared/git-host/index.ts'
import { apiUrl, gitOptions, repoName } from './shared/git-host/options.ts'
import { encodeKey } from './shared/public-url.ts'

const API_URL = 'https://api.github.com'
/** jsDelivr returns 403 for larger files of GitHub repositories. */
const JSDELIVR_MAX_BYTES = 20 * 1024 * 1024

const config = z.object({
  repo: repoName().describe('Repository as "owner/name".'),
  ...gitOptions,
  cdn: z
    .enum(['raw', 'jsdelivr'])
    .optional()
    .describe('Service that serves the files if "urlPrefix" is not set. Default: "raw" (GitHub itself).'),
  apiUrl: apiUrl()
    .default(API_URL)
    .describe('URL of the API. For GitHub Enterprise Server, it ends with /api/v3.'),
})

type Options = z.output<typeof config>

/** A repository at GitHub or on a GitHub Enterprise Server. */
export const github = gitHost({
  type: 'github',
  about: {
    family: 'repository',
    what: 'a repository on GitHub',
    testedAgainst: 'emulate',
    choices: [
      {
        label: 'GitHub',
        hint: 'a public repository',
        asks: ['repo', 'branch', 'token'],
        where: 'Settings → Developer settings → Personal access tokens, with "Contents: Read and write".',
      },
    ],
  },
  config,
  validate: findCdnProblem,
  api: options => ({
    ...contentsApi(options),
    headers: {
      Authorization: `Bearer ${options.token}`,
      // With this type, responses omit the content of files over 1 MB.
      Accept: 'application/vnd.github.object+json',
      'X-GitHub-Api-Version': '2022-11-28',
    },
    create: 'PUT',
    publicUrl: publicUrlOf(options),
    maxBytes: options.cdn === 'jsdelivr' ? JSDELIVR_MAX_BYTES : undefined,
  }),
  picgo: old => ({
    repo: old.text('repo'),
    branch: old.text('branch') ?? 'master',
    token: old.text('token'),
    urlPrefix: old.url('customUrl'),
    keyTemplate: old.template(old.text('path')),
  }),
})

/** Returns the public URL of the branch, without a slash at the end. */
export function publicUrlOf({ repo, branch, cdn, apiUrl }: Options): string {
  const [name, ref] = [encodeKey(repo), encodeKey(branch)]
  if (cdn === 'jsdelivr') return `https://cdn.jsdelivr.net/gh/${name}@${ref}`
  if (apiUrl === API_URL) return `https://raw.githubusercontent.com/${name}/${ref}`
  // GitHub Enterprise Server has the API below its website. GitHub Enterprise Cloud has it on the hostname `api.`.
  const site = apiUrl.replace(/\/api\/v3$/, '').replace(/^(https?:\/\/)api\.(.+\.ghe\.com)$/, '$1$2')
  return `${site}/${name}/raw/${ref}`
}

function findCdnProblem({ cdn, urlPrefix, apiUrl, branch }: Options): string | undefined {
  if (cdn === undefined) return undefined
  if (urlPrefix !== undefined) return 'Set "urlPrefix" or "cdn", not both.'
  if (cdn === 'raw') return undefined
  if (apiUrl !== API_URL) return 'jsDelivr serves files of github.com only. Set "cdn" to "raw".'
  return branch.includes('/')
    ? 'jsDelivr does not support branch names with "/". Use another branch, or set "cdn" to "raw".'
    : undefined
}
