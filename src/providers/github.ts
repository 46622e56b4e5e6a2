import * as z from '../packages/zod.ts'
import { contentsApi } from './shared/git-host/contents-api.ts'
import { gitHost } from './shared/git-host/index.ts'
import { apiUrl, gitOptions, repoName } from './shared/git-host/options.ts'
import { encodeKey } from './shared/public-url.ts'

const API_URL = 'https://api.github.com'

const config = z.object({
  repo: repoName().describe('Repository as "owner/name".'),
  ...gitOptions,
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
export function publicUrlOf({ repo, branch, apiUrl }: Options): string {
  const [name, ref] = [encodeKey(repo), encodeKey(branch)]
  if (apiUrl === API_URL) return `https://raw.githubusercontent.com/${name}/${ref}`
  // GitHub Enterprise Server has the API below its website. GitHub Enterprise Cloud has it on the hostname `api.`.
  const site = apiUrl.replace(/\/api\/v3$/, '').replace(/^(https?:\/\/)api\.(.+\.ghe\.com)$/, '$1$2')
  return `${site}/${name}/raw/${ref}`
}
