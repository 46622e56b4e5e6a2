import type { HttpReply } from '../http/client.ts'
import * as z from '../packages/zod.ts'
import { gitHost, type RepositoryFile } from './shared/git-host/index.ts'
import { apiUrl, gitOptions } from './shared/git-host/options.ts'
import { encodeKey, encodeSegment } from './shared/public-url.ts'

/** A project at GitLab.com or on a GitLab server. */
export const gitlab = gitHost({
  type: 'gitlab',
  about: {
    family: 'repository',
    what: 'a repository on GitLab',
    choices: [
      {
        label: 'GitLab',
        hint: 'a public project',
        asks: ['repo', 'branch', 'token'],
        where: 'Preferences → Access tokens, with the scope "api".',
      },
    ],
  },
  config: z.object({
    repo: z
      .string()
      .regex(
        /^(?:\d+|[^\s/?#%\\]+(?:\/[^\s/?#%\\]+)+)$/,
        'must be "group/project" or the numeric ID of the project',
      )
      .describe(
        'Project as "group/project" (subgroups allowed), or its numeric ID. An ID requires "urlPrefix".',
      ),
    ...gitOptions,
    apiUrl: apiUrl('/api/v4')
      .default('https://gitlab.com/api/v4')
      .describe('URL of the API: the URL of the server followed by /api/v4.'),
  }),
  validate: ({ repo, urlPrefix }) =>
    /^\d+$/.test(repo) && urlPrefix === undefined
      ? 'Set "urlPrefix", or set "repo" to "group/project". The public URL can\'t be derived from a numeric ID.'
      : undefined,
  api({ apiUrl, repo, branch, token, authorName, authorEmail }) {
    const repoUrl = `${apiUrl}/projects/${encodeSegment(repo)}`
    const author = authorName === undefined ? {} : { author_name: authorName, author_email: authorEmail }
    return {
      headers: { 'PRIVATE-TOKEN': token, Accept: 'application/json' },
      repoUrl,
      branchUrl: `${repoUrl}/repository/branches/${encodeSegment(branch)}`,
      fileUrl: key => `${repoUrl}/repository/files/${encodeSegment(key)}`,
      lookUp: 'HEAD',
      read: readHeaders,
      create: 'POST',
      commit: (message, found) => ({
        branch,
        commit_message: message,
        ...author,
        ...(found?.commit !== undefined && { last_commit_id: found.commit }),
      }),
      storedAt: ({ file_path }) => file_path,
      content: { encoding: 'base64' },
      publicUrl: `${apiUrl.replace(/\/api\/v4$/, '')}/${encodeKey(repo)}/-/raw/${encodeKey(branch)}`,
    }
  },
})

/** Reads the headers of a response to HEAD, which have all properties of a file. */
function readHeaders({ headers }: HttpReply): RepositoryFile | undefined {
  const { 'x-gitlab-blob-id': sha, 'x-gitlab-size': size, 'x-gitlab-last-commit-id': commit } = headers
  return sha === undefined || size === undefined ? undefined : { sha, size: Number(size), commit }
}
