import * as z from '../packages/zod.ts'
import { contentsApi } from './shared/git-host/contents-api.ts'
import { gitHost } from './shared/git-host/index.ts'
import { apiUrl, gitOptions, repoName } from './shared/git-host/options.ts'
import { encodeKey } from './shared/public-url.ts'

/** A repository on a server that runs Gitea or Forgejo, such as Codeberg. */
export const gitea = gitHost({
  type: 'gitea',
  about: {
    family: 'repository',
    what: 'a repository on Gitea, Forgejo, Codeberg',
    choices: [
      {
        label: 'Gitea, Forgejo, Codeberg',
        hint: 'a public repository',
        asks: ['apiUrl', 'repo', 'branch', 'token'],
        where: 'Settings → Applications, with "write:repository".',
      },
    ],
  },
  config: z.object({
    apiUrl: apiUrl('/api/v1').describe('URL of the API: the URL of the server followed by /api/v1.'),
    repo: repoName().describe('Repository as "owner/name".'),
    ...gitOptions,
  }),
  api(options) {
    const { apiUrl, repo, branch, token } = options
    const site = apiUrl.replace(/\/api\/v1$/, '')
    return {
      ...contentsApi(options),
      headers: { Authorization: `token ${token}`, Accept: 'application/json' },
      create: 'POST',
      publicUrl: `${site}/${encodeKey(repo)}/raw/branch/${encodeKey(branch)}`,
    }
  },
})
