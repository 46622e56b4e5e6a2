import * as z from '../packages/zod.ts'
import { defineProvider } from './contract.ts'
import { createGitHubLike } from './shared/forge/github-like.ts'
import { createContentsTarget } from './shared/forge/index.ts'
import { apiUrl, contentsOptions, findContradiction, maxBytes, repoName } from './shared/forge/options.ts'
import { encodeKey } from './shared/public-url.ts'

const config = z.object({
  apiUrl: apiUrl('/api/v1').describe('Address of the API: the address of the server with /api/v1 behind it.'),
  repo: repoName().describe('Repository, "owner/name".'),
  ...contentsOptions,
  maxBytes: maxBytes(100),
})

/** A repository on a server that runs Gitea or Forgejo, such as Codeberg. */
export const gitea = defineProvider({
  type: 'gitea',
  config,
  validate: findContradiction,
  open(options, deps) {
    const { apiUrl, repo, branch, token } = options
    const site = apiUrl.replace(/\/api\/v1$/, '')
    const forge = {
      ...createGitHubLike(options),
      headers: { Authorization: `token ${token}`, Accept: 'application/json' },
      create: 'POST',
      publicUrl: `${site}/${encodeKey(repo)}/raw/branch/${encodeKey(branch)}`,
    } as const
    return createContentsTarget(forge, options, deps)
  },
})
