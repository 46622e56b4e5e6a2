import { createHash, randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { Provider } from '../../../../src/providers/contract.ts'
import { gitea } from '../../../../src/providers/gitea.ts'
import { github } from '../../../../src/providers/github.ts'
import { gitlab } from '../../../../src/providers/gitlab.ts'
import { explainReply } from '../../../../src/providers/shared/git-host/failure.ts'
import { failureOf } from '../../../helpers/failure-of.ts'
import { type Answer, type Played, play } from '../../../helpers/player.ts'
import { never, type Options, open, problemOf, put } from '../../../helpers/target.ts'

/** Git's name of a file. */
const blobOf = (text: string) => createHash('sha1').update(`blob ${text.length}\0${text}`).digest('hex')
const base64 = (text: string) => Buffer.from(text).toString('base64')
const message = (status: number, message: string): Answer => ({ status, body: { message } })

/** What a Git host documents: its requests about a file, and what it answers. */
interface Host {
  readonly provider: Provider
  /** Path of the API on the server. */
  readonly api: string
  readonly token: Readonly<Record<string, string>>
  fileUrl(key: string): string
  readonly look: string
  readonly create: string
  found(text: string): Answer
  readonly absent: Answer
  /** The response to a commit. */
  stored(key: string): Answer
  readonly removed: Answer
  /** Members of a commit that replaces or removes what was found. */
  replaced(text: string): object
  commit(text: string, author?: boolean): object
  readonly removal: object
  /** How it refuses a commit when somebody else has made, changed or removed the file since. */
  readonly stale: Readonly<Record<'made' | 'changed' | 'removed', Answer>>
}

const found = (text: string): Answer => {
  const content = { type: 'file', path: 'a', sha: blobOf(text), size: text.length, content: base64(text) }
  return { status: 200, body: content }
}
/** What Gitea has from GitHub. */
const contents = {
  look: 'GET',
  found,
  stored: (path: string) => ({ status: 201, body: { content: { path }, commit: {} } }),
  removed: { status: 200, body: { content: null, commit: {} } },
  replaced: (text: string) => ({ sha: blobOf(text) }),
  commit: (text: string) => ({
    ...{ message: `Add ${text}`, branch: 'main', author: { name: 'Ada', email: 'ada@example.com' } },
    content: base64(text),
  }),
  removal: {
    ...{ message: 'Remove a/b c.png', branch: 'main' },
    author: { name: 'Ada', email: 'ada@example.com' },
  },
}
const HOSTS: Readonly<Record<'github' | 'gitea' | 'gitlab', Host>> = {
  // docs.github.com/en/rest/repos/contents, and answers of api.github.com
  github: {
    ...contents,
    provider: github,
    api: '/api/v3',
    token: {
      authorization: 'Bearer the-token-0123456789',
      accept: 'application/vnd.github.object+json',
      'x-github-api-version': '2022-11-28',
    },
    fileUrl: key => `/api/v3/repos/octo/img/contents/${key}`,
    create: 'PUT',
    absent: message(404, 'Not Found'),
    stale: {
      made: message(422, 'Invalid request.\n\n"sha" wasn\'t supplied.'),
      changed: message(409, 'a.bin does not match 0d1'),
      removed: message(422, 'Invalid request. "sha" does not match'),
    },
  },
  // Gitea 1.21: routers/api/v1/repo/file.go, services/repository/files, models/error.go
  gitea: {
    ...contents,
    provider: gitea,
    api: '/api/v1',
    token: { authorization: 'token the-token-0123456789', accept: 'application/json' },
    fileUrl: key => `/api/v1/repos/octo/img/contents/${key}`,
    create: 'POST',
    absent: message(404, 'object does not exist [id: , rel_path: a]'),
    stale: {
      made: message(422, 'repository file already exists [path: a.bin]'),
      changed: message(422, 'sha does not match [given: 0d1, expected: 7c2]'),
      removed: message(404, 'repository file does not exist [path: a.bin]'),
    },
  },
  // GitLab: doc/api/repository_files.md, lib/api/files.rb, app/services/files
  gitlab: {
    provider: gitlab,
    api: '/api/v4',
    token: { 'private-token': 'the-token-0123456789', accept: 'application/json' },
    fileUrl: key => `/api/v4/projects/octo%2Fimg/repository/files/${key.replaceAll('/', '%2F')}`,
    look: 'HEAD',
    create: 'POST',
    found: text => ({
      status: 200,
      headers: {
        ...{ 'X-Gitlab-Blob-Id': blobOf(text), 'X-Gitlab-Size': String(text.length) },
        'X-Gitlab-Last-Commit-Id': `commit of ${text}`,
      },
    }),
    absent: { status: 404 },
    stored: file_path => ({ status: 201, body: { file_path, branch: 'main' } }),
    removed: { status: 204 },
    replaced: text => ({ last_commit_id: `commit of ${text}` }),
    commit: text => ({
      ...{ branch: 'main', commit_message: `Add ${text}`, author_name: 'Ada' },
      ...{ author_email: 'ada@example.com', encoding: 'base64', content: base64(text) },
    }),
    removal: {
      ...{ branch: 'main', commit_message: 'Remove a/b c.png' },
      ...{ author_name: 'Ada', author_email: 'ada@example.com' },
    },
    stale: {
      made: message(400, 'A file with this name already exists'),
      changed: message(400, 'You are attempting to update a file that has changed since you started'),
      removed: message(400, "A file with this name doesn't exist"),
    },
  },
}
const KINDS = Object.keys(HOSTS) as (keyof typeof HOSTS)[]

const isWrite = ({ method }: { method: string }) => ['POST', 'PUT', 'DELETE'].includes(method)

/** A host that gives these answers, those to looks and those to commits each in their order, and a destination there. */
async function start(
  kind: keyof typeof HOSTS,
  { looks = [], commits = [], all }: { looks?: Answer[]; commits?: Answer[]; all?: Answer },
  options: Options = {},
) {
  const { provider, api } = HOSTS[kind]
  const nothing: Answer = { status: 500, body: 'nothing is played any more' }
  const next = (request: Played) => all ?? (isWrite(request) ? commits : looks).shift() ?? nothing
  const { url, requests, lines } = await play(next)
  const own = { apiUrl: url + api, repo: 'octo/img', token: 'the-token-0123456789', ...options }
  const target = await open(provider, own)
  const methods = () => requests.filter(isWrite).map(({ method }) => method)
  return { url, target, requests, lines, methods }
}

describe.each(KINDS)('a commit to %s', kind => {
  const { look, create, fileUrl, found, absent, stored, removed, replaced, ...host } = HOSTS[kind]

  it('carries message, author and branch, and what it replaces', async () => {
    const key = 'a/b c.png'
    const { target, requests, lines } = await start(
      kind,
      {
        looks: [absent, found('one'), found('two'), found('two'), absent],
        commits: [stored(key), stored(key), removed],
      },
      { commitMessage: 'Add {filename}', authorName: 'Ada', authorEmail: 'ada@example.com' },
    )
    const commits = ['one', 'two', 'two'] // the last one is there already
    for (const text of commits) await put(target, key, text)
    await target.remove?.(key, never())
    const path = fileUrl('a/b%20c.png')
    const looked = `${look} ${path}?ref=main`
    expect(lines()).toEqual([
      ...[looked, `${create} ${path}`, looked, `PUT ${path}`, looked, looked, `DELETE ${path}`],
      ...(kind === 'gitlab' ? [looked] : []), // its response to a removal is empty
    ])
    const sent = requests.filter(isWrite).map(({ text }) => JSON.parse(text))
    const commit = (text: string) =>
      JSON.parse(JSON.stringify(host.commit(text)).replace(`Add ${text}`, 'Add b c.png'))
    expect(sent).toEqual([
      commit('one'),
      { ...commit('two'), ...replaced('one') },
      { ...host.removal, ...replaced('two') },
    ])
    expect(requests[0]?.headers).toMatchObject(host.token)
    expect(requests[1]?.headers).toMatchObject({ ...host.token, 'content-length': expect.any(String) })
    expect(requests[1]?.headers['transfer-encoding']).toBeUndefined() // many proxies refuse chunks
  })

  it.each([
    ['made', absent, found('theirs'), create],
    ['changed', found('before'), found('theirs'), 'PUT'],
    ['removed', found('before'), absent, 'PUT'],
  ] as const)(
    'is made again when somebody else has %s the file since it was looked for',
    async (what, before, after, method) => {
      const { target, methods } = await start(kind, {
        looks: [before, after],
        commits: [host.stale[what], stored('a.bin')],
      })
      await put(target, 'a.bin', 'ours')
      expect(methods()).toEqual([method, after === absent ? create : 'PUT'])
    },
  )

  it('counts as done when somebody else makes the same file first', async () => {
    const { target, methods } = await start(kind, {
      looks: [absent, found('the same')],
      commits: [host.stale.made],
    })
    await put(target, 'a.bin', 'the same')
    expect(methods()).toHaveLength(1)
  })

  it('whose answer is lost is found and not made twice', async () => {
    const { target, methods } = await start(kind, {
      looks: [absent, found('bytes')],
      commits: [{ status: 0 }],
    })
    expect(await failureOf(put(target, 'a.bin'))).toMatchObject({ retryable: true })
    await put(target, 'a.bin')
    expect(methods()).toHaveLength(1)
  })

  it('is refused before anything is sent when the file is larger than the forge takes', async () => {
    const { target, requests } = await start(kind, {}, { fileSize: '1000B' })
    const error = await failureOf(put(target, 'large.bin', randomBytes(1001)))
    expect(error).toMatchObject({ code: 'too_large', retryable: false })
    expect(error.message).toMatch(
      /: it has 1001 bytes, more than the limit of 1000 bytes for 127\.0\.0\.1:\d+ /,
    )
    expect(requests).toEqual([])
  })

  it('waits for the one before it', async () => {
    expect((await start(kind, {})).target.traits).toMatchObject({ serial: true })
  })

  it('fails without a repetition when the token is refused', async () => {
    const refusal = message(401, 'Bad credentials')
    for (const [looks, commits] of [
      [[refusal], []],
      [[absent], [refusal]],
    ]) {
      const sent = commits?.length
      const { target, methods } = await start(kind, { looks, commits })
      const error = await failureOf(put(target, 'a.bin'))
      expect(error.message).toMatch(
        /^Could not store "a\.bin" at .* returned 401 \(the token is invalid or exp/,
      )
      expect(error.retryable).toBe(false)
      expect(methods()).toHaveLength(sent ?? 0)
    }
  })

  it('a login page in the place of an answer to it is no file', async () => {
    for (const body of ['<html>Log in</html>', '', { content: { sha: '0'.repeat(40) }, branch: 'main' }]) {
      const { target } = await start(kind, { looks: [absent], commits: [{ status: 200, body }] })
      const error = await failureOf(put(target, 'a.bin'))
      expect(error).toMatchObject({ code: 'destination_failed', retryable: false })
    }
  })

  it('and a page in the place of an answer to its removal is not believed', async () => {
    const looks = [found('bytes'), found('bytes')]
    const { target } = await start(kind, { looks, commits: [{ status: 200, body: { message: 'Log in' } }] })
    await expect(target.remove?.('a.bin', never())).rejects.toThrow('but not a response of its API')
  })

  it('has "urlPrefix" in front of the key, wherever it is stored', async () => {
    const { target } = await start(
      kind,
      { looks: [absent], commits: [stored('a/b c.png')] },
      { urlPrefix: 'https://img.example.com/x/' },
    )
    expect((await put(target, 'a/b c.png')).url).toBe('https://img.example.com/x/a/b%20c.png')
  })
})

/** What is made of a response of a forge. */
function explain(status: number, body: unknown, headers: Record<string, string> = {}) {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const reply = { status, headers, text, bytes: Buffer.from(text), json: () => body }
  return explainReply(reply, { repo: 'octo/img', branch: 'main' })
}

describe('what a forge refuses is explained', () => {
  const PROTECTED = /^the branch "main" is protected: .* Allow the owner/s
  const ABSENT = /^"octo\/img" or its branch "main" does not exist, or the token has no access to it: /
  const NO_BRANCH = /^"octo\/img" has no branch "main": .* Create it/
  const TOO_LARGE = /^the file is too large: .* Set "fileSize"/
  it.each<[number, string | object, RegExp]>([
    [301, '', /^"octo\/img" has moved: .*Set "repo"/],
    [401, 'Bad credentials', /invalid or expired, or lacks a scope: Bad credentials\. Check "token"/],
    [401, { error: 'insufficient_scope' }, /lacks a scope: insufficient_scope\. Check "token"/],
    [
      403,
      'Resource not accessible by personal access token',
      /no permission in "octo\/img": .* Give it write/,
    ],
    [403, 'Resource protected by organization SAML enforcement. You must', /single sign-on: .* Authorize/],
    [403, 'Repository was archived so is read-only', /"octo\/img" is archived and accepts .* Unarchive/],
    [403, '403 Forbidden - You are not allowed to push into this branch', PROTECTED],
    [400, 'You are not allowed to push into this branch', PROTECTED],
    [409, 'Rule violations\n\nChanges must be made through a pull request', PROTECTED],
    [409, 'Could not create file: Required status check "ci" is expected', PROTECTED],
    [404, "The target couldn't be found", ABSENT],
    [404, '404 Project Not Found', ABSENT],
    [404, 'branch does not exist [name: main]', NO_BRANCH],
    [404, 'Branch main not found', NO_BRANCH],
    [413, 'Request Entity Too Large', TOO_LARGE],
    [422, 'Sorry, the file is too large to be processed', TOO_LARGE],
    [400, { message: { base: ['file exceeds the size limit'] } }, TOO_LARGE],
    [422, { message: 'Validation Failed', errors: [] }, /^it rejected the request: Validation Failed/],
    [418, 'no', /^it rejected the request: no/],
  ])('%i %j', (status, body, words) => {
    const found = explain(status, typeof body === 'string' ? { message: body } : body)
    expect(`${found?.meaning}: ${found?.reason}. ${found?.advice}`).toMatch(words)
    expect(found?.retryable).toBe(false)
  })

  it('without the token, even when the forge repeats it', async () => {
    const { target } = await start('gitea', { all: message(403, 'not for the-token-0123456789') })
    const error = await failureOf(put(target, 'a.bin'))
    expect(error.message).toMatch(/returned 403 \(.*\): not for \[secret\]\. /)
  })

  it('and a missing branch is no missing file', async () => {
    const { target } = await start('gitea', { all: message(404, 'branch does not exist [name: main]') })
    await expect(target.exists?.('a.bin', never())).rejects.toThrow('has no branch "main"')
    await expect(put(target, 'a.bin')).rejects.toThrow('"octo/img" has no branch "main"')
  })

  it('and a file does not take the place of a folder', async () => {
    const looks = [{ status: 200, body: [{ type: 'file', path: 'folder/file' }] }]
    const { target, methods } = await start('gitea', { looks })
    expect((await failureOf(put(target, 'folder'))).message).toMatch(/folder/)
    expect(methods()).toEqual([])
  })
})

describe('what passes is tried again', () => {
  it.each([
    [409, 'is at 0d1 but expected 7c2'],
    [400, 'Could not update refs/heads/main. Please refresh and try again.'],
    [422, 'Invalid request.\n\n"sha" wasn\'t supplied.'],
  ])('a storm of commits by others, answered %i', async (status, words) => {
    const { absent } = HOSTS.gitlab
    const refusals = [message(status, words), message(status, words)]
    const { target, methods } = await start('gitlab', { looks: [absent, absent], commits: refusals })
    const error = await failureOf(put(target, 'a.bin'))
    expect(error).toMatchObject({ retryable: true })
    expect(error.message).toMatch(/something else changed the branch "main" at the same time/)
    expect(methods()).toHaveLength(2) // once more by itself
  })

  /** As GitHub and GitLab count: seconds since 1970. */
  const inAnHour = String(Math.floor(Date.now() / 1000) + 3600)
  it.each<[string, number, Record<string, string>, object, least: number, most: number]>([
    ['429', 429, { 'retry-after': '7' }, {}, 7, 7],
    ['429 without a time', 429, {}, {}, 60, 60],
    ['hourly', 403, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': inAnHour }, {}, 3000, 3600],
    ["GitLab's", 429, { 'ratelimit-remaining': '0', 'ratelimit-reset': inAnHour }, {}, 3000, 3600],
    ['secondary, with a time', 403, { 'retry-after': '11', 'x-ratelimit-remaining': '4000' }, {}, 11, 11],
    ['secondary', 403, {}, { message: 'You have exceeded a secondary rate limit.' }, 60, 60],
  ])('a rate limit, after the time that it names: %s', (_, status, headers, body, least, most) => {
    const found = explain(status, body, headers)
    expect(found).toMatchObject({ meaning: 'the rate limit is exceeded', retryable: true })
    expect(found?.retryAfterS).toBeGreaterThanOrEqual(least)
    expect(found?.retryAfterS).toBeLessThanOrEqual(most)
  })
})

it('compares by SHA-256 in repositories that name files so', async () => {
  const sha = '473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813' // the empty file
  const all = { status: 200, body: { type: 'file', path: 'empty', sha, size: 0 } }
  const { target, requests } = await start('gitea', { all })
  await put(target, 'empty', '')
  expect(requests).toHaveLength(1)
})

it('makes the first commit of an empty repository', async () => {
  const looks = [message(409, 'Git Repository is empty.')]
  const { target, methods } = await start('gitea', { looks, commits: [HOSTS.gitea.stored('first.bin')] })
  await put(target, 'first.bin')
  expect(methods()).toEqual(['POST'])
})

describe('a check', () => {
  const PUSH = /does not allow the owner of the token to push to "main"\./
  it.each([
    ['github', { permissions: { push: true } }, {}, undefined],
    [
      'gitea',
      { empty: false, archived: false, permissions: { push: true } },
      { user_can_push: true },
      undefined,
    ],
    ['gitlab', { empty_repo: false, archived: false }, { can_push: true }, undefined],
    ['gitea', { archived: true }, {}, /"octo\/img" is archived and accepts no commits\./],
    [
      'gitea',
      { permissions: { push: false } },
      {},
      /"octo\/img" is not writable for the owner of the token\./,
    ],
    ['gitea', {}, { user_can_push: false }, PUSH],
    ['gitlab', {}, { can_push: false }, PUSH],
    ['gitlab', {}, { name: 'master' }, /returned 200, but not a response of its API/],
  ] as const)('of %s: %j %j', async (kind, repo, branch, problem) => {
    const { target, methods } = await start(kind, {
      looks: [
        { status: 200, body: { id: 7, ...repo } },
        { status: 200, body: { name: 'main', ...branch } },
      ],
    })
    if (problem === undefined) await target.check?.(never())
    else await expect(target.check?.(never())).rejects.toThrow(problem)
    expect(methods()).toEqual([])
  })

  it.each([
    ['gitea', { empty: true }],
    ['gitlab', { empty_repo: true }],
  ] as const)('of %s is content with an empty repository', async (kind, repo) => {
    const { target, requests } = await start(kind, { looks: [{ status: 200, body: { id: 7, ...repo } }] })
    await target.check?.(never())
    expect(requests).toHaveLength(1)
  })
})

it('sends projects, branches and keys with slashes as one part of the path', async () => {
  const named = { status: 200, body: { id: 7, name: 'feature/x' } }
  const { url, target, lines } = await start(
    'gitlab',
    { looks: [named, named, { status: 404 }], commits: [HOSTS.gitlab.stored('a/ü.png')] },
    { repo: 'group/sub/img', branch: 'feature/x' },
  )
  await target.check?.(never())
  const stored = await put(target, 'a/ü.png')
  const root = '/api/v4/projects/group%2Fsub%2Fimg'
  expect(lines()).toEqual([
    `GET ${root}`,
    `GET ${root}/repository/branches/feature%2Fx`,
    `HEAD ${root}/repository/files/a%2F%C3%BC.png?ref=feature%2Fx`,
    `POST ${root}/repository/files/a%2F%C3%BC.png`,
  ])
  expect(stored.url).toBe(`${url}/group/sub/img/-/raw/feature/x/a/%C3%BC.png`)
})

it.each<[Provider, Options, RegExp | undefined]>([
  [gitea, {}, /./],
  [gitea, { apiUrl: 'https://codeberg.org' }, /must end with \/api\/v1/],
  [gitlab, { repo: 'img' }, /"group\/project" or the numeric ID/],
  [gitlab, { apiUrl: 'https://git.example.com' }, /must end with \/api\/v4/],
  [gitlab, { repo: '42' }, /Set "urlPrefix"/],
  [gitlab, { repo: '42', urlPrefix: 'https://img.example.com' }, undefined],
  [github, { repo: 'img' }, /owner\/name/],
  [github, { repo: 'https://github.com/octo/img' }, /owner\/name/],
  [github, { repo: 'octo/img/sub' }, /owner\/name/],
  [github, { branch: 'a b' }, /valid branch name/],
  [github, { commitMessage: 'Add {name}' }, /unknown placeholder\. Available: \{filename\}, \{key\}/],
  [github, { apiUrl: 'api.github.com' }, /http or https URL/],
  [github, { urlPrefix: 'https://x.example/?a=' }, /must not have a query/],
  [github, { fileSize: 0 }, /./],
  [github, { token: '' }, /./],
  [github, { authorName: 'Ada' }, /both "authorName" and "authorEmail"/],
  [github, { authorEmail: 'a@example.com' }, /both "authorName" and "authorEmail"/],
])('options of $type: %j', (provider, options, problem) => {
  const found = problemOf(provider, { repo: 'octo/img', token: 't', ...options })
  if (problem === undefined) expect(found).toBeUndefined()
  else expect(found).toMatch(problem)
})
