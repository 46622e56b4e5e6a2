import type { HttpReply } from '../../../http/client.ts'
import { excerpt } from '../../../http/excerpt.ts'
import { membersOf } from '../../../members.ts'
import { Problem } from '../../../problem.ts'
import { encodeKey, encodeSegment } from '../public-url.ts'
import { type GitApi, type RepositoryFile, readMembers } from './index.ts'
import type { GitOptions } from './options.ts'

/**
 * The API that GitHub and Gitea have in common: `/repos/{owner}/{name}/contents/{path}`, and the `sha` of the file that a
 * commit replaces.
 */
export function contentsApi({ apiUrl, repo, branch, authorName, authorEmail }: GitOptions) {
  const repoUrl = `${apiUrl}/repos/${encodeKey(repo)}`
  const author = authorName === undefined ? {} : { author: { name: authorName, email: authorEmail } }
  return {
    repoUrl,
    branchUrl: `${repoUrl}/branches/${encodeSegment(branch)}`,
    fileUrl: key => `${repoUrl}/contents/${encodeKey(key)}`,
    lookUp: 'GET',
    read: readFile,
    commit: (message, found) => ({ message, branch, ...author, ...(found && { sha: found.sha }) }),
    storedAt: ({ content }) => membersOf(content)['path'],
    confirmsRemoval: answer => 'commit' in answer,
  } satisfies Partial<GitApi>
}

/** Reads a file entry of the contents API. */
function readFile(reply: HttpReply): RepositoryFile | undefined {
  const entry = readMembers(reply)
  const { type, path, sha, size } = entry
  if (type === 'file' && typeof sha === 'string' && typeof size === 'number') return { sha, size }
  if (typeof type !== 'string' && !Array.isArray(entry)) return undefined
  const name = typeof path === 'string' ? `"${excerpt(path)}"` : 'its object key'
  throw new Problem(`in the branch, ${name} is a folder, a symbolic link or a submodule`, {
    advice: 'Change the key template.',
  })
}
