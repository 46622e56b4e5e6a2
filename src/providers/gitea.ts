import * as z from '../packages/zod.ts'
import { defineProvider } from './contract.ts'
import { createGitHubLike } from './shared/forge/github-like.ts'
import { createContentsTarget } from './shared/forge/index.ts'
import { apiUrl, contentsOptions, findContradiction, maxBytes, repoName } from './shared/forge/options.ts'
import { encodeKey } from './shared/public-url.ts'

const config = z.object({
  apiUrl: apiUrl('/api/v1').describe('URL of the API: the URL of the server followed by /api/v1.'),
  repo: repoName().describe('Repository as "owner/name".'),
  ...contentsOptions,
  maxBytes: maxBytes(100),
})

/** A repository on a server that runs Gitea or Forgejo, such as Codeberg. */
export const gitea = defineProvider({
  type: 'gitea',
  about: {
    family: 'repository',
    what: 'a repository on Gitea, Forgejo, Codeberg',
    testedAgainst: 'a mock of the documented API',
    example: {
      codeberg: {
        apiUrl: 'https://codeberg.org/api/v1',
        repo: 'octo/img',
        branch: 'main',
        token: 'CODEBERG_TOKEN',
        keyTemplate: 'blog/{Y}/{filename}-{sha256-8}{extname}',
      },
    },
    choices: [
      {
        label: 'Gitea, Forgejo, Codeberg',
        hint: 'a public repository',
        asks: ['apiUrl', 'repo', 'branch', 'token'],
        where: 'Settings → Applications, with "write:repository".',
      },
    ],
  },
  config,
  validate: findContradiction,
  open(options, { http }) {
    const { apiUrl, repo, branch, token } = options
    const site = apiUrl.replace(/\/api\/v1$/, '')
    const forge = {
      ...createGitHubLike(options),
      headers: { Authorization: `token ${token}`, Accept: 'application/json' },
      create: 'POST',
      publicUrl: `${site}/${encodeKey(repo)}/raw/branch/${encodeKey(branch)}`,
    } as const
    return createContentsTarget(forge, options, http)
  },
})
