import * as z from '../packages/zod.ts'
import { defineProvider } from './contract.ts'
import { createGitHubLike } from './shared/forge/github-like.ts'
import { createContentsTarget, type Forge } from './shared/forge/index.ts'
import { apiUrl, contentsOptions, findContradiction, maxBytes, repoName } from './shared/forge/options.ts'
import { readAddress, readPathTemplate, readTextOption, type Translated } from './shared/picgo-options.ts'
import { encodeKey } from './shared/public-url.ts'

const config = z.object({
  repo: repoName().describe('Repository as "owner/name".'),
  ...contentsOptions,
  apiUrl: apiUrl('/api/v5')
    .default('https://gitee.com/api/v5')
    .describe('URL of the API: the URL of the server followed by /api/v5.'),
  maxBytes: maxBytes(50),
})

type Options = z.output<typeof config>

/** A repository at Gitee. */
export const gitee = defineProvider({
  type: 'gitee',
  about: {
    family: 'repository',
    what: 'a repository on Gitee',
    testedAgainst: 'a mock of the documented API',
    example: {
      blog: {
        repo: 'octo/img',
        branch: 'master',
        token: 'GITEE_TOKEN',
        keyTemplate: 'blog/{Y}/{filename}-{sha256-8}{extname}',
      },
    },
    choices: [
      {
        label: 'Gitee · 码云',
        hint: 'a public repository',
        asks: ['repo', 'branch', 'token'],
        where: '设置 → 私人令牌, with "projects".',
      },
    ],
  },
  config,
  validate: findContradiction,
  open: (options, deps) => createContentsTarget(describeGitee(options), options, deps),
  fromPicGo(options) {
    const owner = readTextOption(options['owner'])
    return owner === undefined ? fromUploaderPlugin(options) : fromGiteePlugin(owner, options)
  },
})

function describeGitee(options: Options): Forge {
  const { apiUrl, repo, branch, token, authorName, authorEmail } = options
  // Gitee expects names with brackets, as in forms, also in JSON.
  const author = authorName === undefined ? {} : { 'author[name]': authorName, 'author[email]': authorEmail }
  return {
    ...createGitHubLike(options),
    headers: { Authorization: `Bearer ${token}`, Accept: 'application/json' },
    create: 'POST',
    commit: (message, found) => ({ message, branch, ...author, ...(found && { sha: found.sha }) }),
    removesByQuery: true,
    publicUrl: `${apiUrl.replace(/\/api\/v5$/, '')}/${encodeKey(repo)}/raw/${encodeKey(branch)}`,
  }
}

/** Replacements for `$customPath` by `customPath` of picgo-plugin-gitee-uploader. */
const CUSTOM_PATHS: Record<string, string> = { year: '{Y}', yearMonth: '{Y}/{m}', yearQuarter: '{Y}' }

/** Translates options of picgo-plugin-gitee-uploader. */
function fromUploaderPlugin(old: Record<string, unknown>): Translated {
  const notes: string[] = []
  const customPath = readTextOption(old['customPath']) ?? ''
  if (customPath === 'yearQuarter')
    notes.push('"customPath" does not support seasons here. Folders are named by the year.')
  const dated = CUSTOM_PATHS[customPath]
  const options = {
    repo: readTextOption(old['repo']),
    branch: readTextOption(old['branch']) ?? 'master',
    token: readTextOption(old['token']),
    urlPrefix: readAddress(old['customUrl'], notes),
    keyTemplate: readPathTemplate(old['path'], notes, dated === undefined ? {} : { $customPath: dated }),
  }
  return { options, notes }
}

/** Translates options of picgo-plugin-gitee, whose URLs always have the branch "master". */
function fromGiteePlugin(owner: string, old: Record<string, unknown>): Translated {
  const notes: string[] = []
  const repo = `${owner}/${readTextOption(old['repo']) ?? ''}`
  const site = readAddress(old['customUrl'], notes)
  const options = {
    repo,
    branch: 'master',
    token: readTextOption(old['token']),
    commitMessage: readTextOption(old['message']),
    urlPrefix: site === undefined ? undefined : `${site}/${encodeKey(repo)}/raw/master`,
    keyTemplate: readPathTemplate(old['path'], notes),
  }
  return { options, notes }
}
