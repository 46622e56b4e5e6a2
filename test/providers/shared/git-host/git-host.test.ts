import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { explainReply } from '../../../../src/providers/shared/git-host/failure.ts'
import { deliverTo, FORGES, failureOf, openForge, startForge } from '../../../helpers/forges.ts'
import { objectOf } from '../../../helpers/provider-contract.ts'
import type { ForgeKind } from '../../../servers/forge-dialects.ts'
import type { ForgeReplay } from '../../../servers/forge-replay.ts'

const KINDS: readonly ForgeKind[] = ['gitea', 'gitlab']
const WRITES = ['POST', 'PUT', 'DELETE']
/** As GitHub and GitLab count: seconds since 1970. */
const inAnHour = String(Math.floor(Date.now() / 1000) + 3600)
const never = () => new AbortController().signal
const isWrite = ({ method }: { method: string }) => WRITES.includes(method)
const writesOf = (forge: ForgeReplay) => forge.requests.filter(isWrite).map(({ method }) => method)

describe.each(KINDS)('a commit to %s', kind => {
  it('carries message, author and branch', async () => {
    const author = { authorName: 'Ada', authorEmail: 'ada@example.com' }
    const { forge, target } = await startForge(kind, { commitMessage: 'Add {filename} as {key}', ...author })
    await target.put(objectOf('a/b c.png', Buffer.from('x')), never())
    await target.put(objectOf('a/b c.png', Buffer.from('y')), never())
    await target.remove?.('a/b c.png', never())
    const shapes = {
      gitea: {
        message: 'Add b c.png as a/b c.png',
        branch: 'main',
        author: { name: 'Ada', email: 'ada@example.com' },
      },
      gitlab: {
        commit_message: 'Add b c.png as a/b c.png',
        branch: 'main',
        author_name: 'Ada',
        author_email: 'ada@example.com',
      },
    }
    expect(forge.commits).toHaveLength(3)
    expect(forge.commits[0]).toMatchObject(shapes[kind])
    expect(forge.commits[1]).toMatchObject(shapes[kind])
    expect(JSON.stringify(forge.commits[2])).toContain('Remove a/b c.png')
    expect(writesOf(forge)).toEqual(['POST', 'PUT', 'DELETE'])
    const { headers } = forge.requests.find(isWrite) ?? expect.fail()
    expect(headers['content-length']).toBeDefined() // many proxies refuse chunks
    expect(headers['transfer-encoding']).toBeUndefined()
  })

  it('is not made when the file is there already with the same bytes', async () => {
    const { forge, target } = await startForge(kind)
    const object = objectOf('same.bin', randomBytes(10_000))
    const first = await target.put(object, never())
    expect(await target.put(object, never())).toEqual(first)
    expect(forge.commits).toHaveLength(1)
  })

  it('replaces other bytes of the same size', async () => {
    const { forge, target } = await startForge(kind)
    await target.put(objectOf('size.bin', Buffer.from('one')), never())
    const { url } = await target.put(objectOf('size.bin', Buffer.from('two')), never())
    expect(await (await fetch(url)).text()).toBe('two')
    expect(forge.commits).toHaveLength(2)
  })

  it.each(['made', 'changed', 'removed'] as const)(
    'is made again when somebody else has %s the file since it was looked for',
    async what => {
      const { forge, target } = await startForge(kind)
      if (what !== 'made') forge.commit('raced.bin', Buffer.from('before'))
      let isFirst = true
      forge.answerWith(request => {
        if (isWrite(request) && isFirst) {
          isFirst = false
          forge.commit('raced.bin', what === 'removed' ? undefined : Buffer.from('theirs'))
        }
        return undefined
      })
      await target.put(objectOf('raced.bin', Buffer.from('ours')), never())
      expect(forge.files.get('raced.bin')?.bytes.toString()).toBe('ours')
      expect(writesOf(forge)).toHaveLength(2)
    },
  )

  it('counts as done when somebody else makes the same file first', async () => {
    const { forge, target } = await startForge(kind)
    forge.answerWith(request => {
      if (isWrite(request)) forge.commit('raced.bin', Buffer.from('the same'))
      return undefined
    })
    await target.put(objectOf('raced.bin', Buffer.from('the same')), never())
    expect(writesOf(forge)).toHaveLength(1)
    expect(forge.commits).toEqual([])
  })

  it('whose answer is lost is found and not made twice', async () => {
    const { forge, target } = await startForge(kind)
    let isFirst = true
    forge.answerWith(request => {
      if (!isWrite(request) || !isFirst) return undefined
      isFirst = false
      return { status: 0, isLate: true }
    })
    await deliverTo(target, ['lost.bin'], 1)
    expect(forge.commits).toHaveLength(1)
    expect(writesOf(forge)).toHaveLength(1)
  })

  it('is refused before anything is sent when the file is larger than the forge takes', async () => {
    const { forge, target } = await startForge(kind, { fileSize: '1000B' })
    const error = await failureOf(target.put(objectOf('large.bin', randomBytes(1001)), never()))
    expect(error).toMatchObject({ code: 'too_large', retryable: false })
    expect(error.message).toMatch(
      /: it has 1001 bytes, more than the limit of 1000 bytes for 127\.0\.0\.1:\d+ /,
    )
    expect(forge.requests).toEqual([])
    await target.put(objectOf('largest.bin', randomBytes(1000)), never())
  })

  it('fails with a hint when the branch is not there', async () => {
    const { target } = await startForge(kind, { branch: 'nowhere' })
    const error = await failureOf(target.put(objectOf('a.bin', Buffer.from('x')), never()))
    expect(error.message).toMatch(/"octo\/img".*branch "nowhere"/)
    expect(error.retryable).toBe(false)
    const checked = await failureOf(target.check?.(never()))
    expect(checked.message).toMatch(/branch "nowhere"/)
  })

  it('fails without a repetition when the token is refused', async () => {
    const { forge, target } = await startForge(kind, { token: 'token-of-nobody' })
    const error = await failureOf(target.put(objectOf('a.bin', Buffer.from('x')), never()))
    expect(error.message).toMatch(/returned 401 \(the token is invalid or expired/)
    expect(error.retryable).toBe(false)
    expect(writesOf(forge)).toEqual([])
  })

  it('waits for the one before it', async () => {
    const { forge, target } = await startForge(kind)
    const keys = ['a', 'b', 'c', 'd']
    await deliverTo(target, keys, 0)
    expect([...forge.files.keys()].sort()).toEqual(keys)
    const order = forge.requests.map(request => `${isWrite(request) ? 'commit' : 'look'}`)
    expect(order).toEqual(keys.flatMap(() => ['look', 'commit']))
  })

  it('does not store a file in the place of a folder', async () => {
    if (kind === 'gitlab') return // it says 404 for folders, and refuses the commit
    const { forge, target } = await startForge(kind)
    forge.commit('folder/file', Buffer.from('x'))
    const error = await failureOf(target.put(objectOf('folder', Buffer.from('y')), never()))
    expect(error.message).toMatch(/folder/)
    expect(forge.commits).toEqual([])
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

  it('and not tried again', async () => {
    const { forge, target } = await startForge('gitea')
    const body = { message: 'Bad credentials' }
    forge.answerWith(request => (isWrite(request) ? { status: 401, body } : undefined))
    const error = await failureOf(target.put(objectOf('a.bin', Buffer.from('x')), never()))
    expect(error.message).toMatch(/^Could not store "a\.bin" at .* returned 401 \(the token is/)
    expect(error).toMatchObject({ code: 'destination_failed', retryable: false })
    expect(writesOf(forge)).toHaveLength(1)
  })

  it('without the token, even when the forge repeats it', async () => {
    const { forge, target } = await startForge('gitea')
    forge.answerWith(() => ({ status: 403, body: { message: `not for ${forge.token}` } }))
    const error = await failureOf(target.put(objectOf('a.bin', Buffer.from('x')), never()))
    expect(error.message).toMatch(/returned 403 \(.*\): not for \[secret\]\. /)
  })

  it.each(KINDS)('%s: a login page in the place of an answer to a commit is no file', async kind => {
    const { forge, target } = await startForge(kind)
    for (const body of ['<html>Log in</html>', '', { content: { sha: '0'.repeat(40) }, branch: 'main' }]) {
      forge.answerWith(request => (isWrite(request) ? { status: 200, body } : undefined))
      const error = await failureOf(target.put(objectOf('a.bin', Buffer.from('x')), never()))
      expect(error).toMatchObject({ code: 'destination_failed', retryable: false })
    }
    expect(forge.commits).toEqual([])
  })

  it('and a missing branch is no missing file', async () => {
    const { forge, target } = await startForge('gitea')
    forge.answerWith(() => ({ status: 404, body: { message: 'branch does not exist [name: main]' } }))
    await expect(target.exists?.('a.bin', never())).rejects.toThrow('has no branch "main"')
  })
})

describe('what passes is tried again', () => {
  it.each([
    [409, { message: 'is at 0d1 but expected 7c2' }],
    [400, { message: 'Could not update refs/heads/main. Please refresh and try again.' }],
    [422, { message: 'Invalid request.\n\n"sha" wasn\'t supplied.' }],
  ])('a storm of commits by others, answered %i', async (status, body) => {
    const { forge, target } = await startForge('gitlab')
    let left = 5
    forge.answerWith(request => (isWrite(request) && left-- > 0 ? { status, body } : undefined))
    const put = target.put(objectOf('a.bin', Buffer.from('x')), never())
    const error = await failureOf(put)
    expect(error).toMatchObject({ retryable: true })
    expect(error.message).toMatch(/something else changed the branch "main" at the same time/)
    expect(writesOf(forge)).toHaveLength(2) // once more by itself
    await deliverTo(target, ['a.bin'], 2)
    expect(forge.files.get('a.bin')?.bytes.toString()).toBe('at a.bin')
  })

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
  const { forge, target } = await startForge('gitea')
  const sha = '473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813' // the empty file
  forge.answerWith(() => ({ status: 200, body: { type: 'file', path: 'empty', sha, size: 0 } }))
  await target.put(objectOf('empty', Buffer.alloc(0)), never())
  expect(forge.requests).toHaveLength(1)
})

it('makes the first commit of an empty repository', async () => {
  const { forge, target } = await startForge('gitea')
  forge.answerWith(request =>
    isWrite(request) ? undefined : { status: 409, body: { message: 'Git Repository is empty.' } },
  )
  await target.put(objectOf('first.bin', Buffer.from('x')), never())
  expect(forge.commits).toHaveLength(1)
})

describe('a check', () => {
  it.each(KINDS)('of %s asks for the repository and the branch and commits nothing', async kind => {
    const { forge, target } = await startForge(kind)
    await target.check?.(never())
    expect(forge.requests.map(({ method }) => method)).toEqual(['GET', 'GET'])
  })

  it.each([
    ['gitea', { archived: true }, {}, /"octo\/img" is archived and accepts no commits\./],
    [
      'gitea',
      { permissions: { push: false } },
      {},
      /"octo\/img" is not writable for the owner of the token\./,
    ],
    ['gitea', {}, { user_can_push: false }, /does not allow the owner of the token to push to "main"\./],
    ['gitlab', {}, { can_push: false }, /does not allow the owner of the token to push to "main"\./],
  ] as const)('of %s finds what stands in the way: %j %j', async (kind, repo, branch, message) => {
    const { forge, target } = await startForge(kind)
    forge.answerWith(({ path }) => ({
      status: 200,
      body: path.includes('/branches/') ? { name: 'main', ...branch } : { id: 7, ...repo },
    }))
    const error = await failureOf(target.check?.(never()))
    expect(error.message).toMatch(message)
  })

  it.each([
    ['gitea', { empty: true }],
    ['gitlab', { empty_repo: true }],
  ] as const)('of %s is content with an empty repository', async (kind, body) => {
    const { forge, target } = await startForge(kind)
    forge.answerWith(() => ({ status: 200, body: { id: 7, ...body } }))
    await target.check?.(never())
    expect(forge.requests).toHaveLength(1)
  })
})

it('sends projects, branches and keys with slashes as one part of the path', async () => {
  const { forge } = await startForge('gitlab')
  const options = { apiUrl: forge.apiUrl, token: forge.token, repo: 'group/sub/img', branch: 'feature/x' }
  const target = await openForge(FORGES.gitlab, options)
  const stored = { id: 7, name: 'feature/x', file_path: 'a/ü.png', branch: 'feature/x' }
  forge.answerWith(({ method }) => ({ status: method === 'HEAD' ? 404 : 200, body: stored }))
  await target.check?.(never())
  const { url } = await target.put(objectOf('a/ü.png', Buffer.from('x')), never())
  await target.close?.()
  const root = '/api/v4/projects/group%2Fsub%2Fimg'
  expect(forge.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
    `GET ${root}`,
    `GET ${root}/repository/branches/feature%2Fx`,
    `HEAD ${root}/repository/files/a%2F%C3%BC.png`,
    `POST ${root}/repository/files/a%2F%C3%BC.png`,
  ])
  expect(forge.requests[2]?.query.get('ref')).toBe('feature/x')
  expect(url).toBe(`${forge.url}/group/sub/img/-/raw/feature/x/a/%C3%BC.png`)
})

it.each(KINDS)('%s: "urlPrefix" stands in front of keys, wherever they are stored', async kind => {
  const { target } = await startForge(kind, { urlPrefix: 'https://img.example.com/x/' })
  const { url } = await target.put(objectOf('a/b c.png', Buffer.from('x')), never())
  expect(url).toBe('https://img.example.com/x/a/b%20c.png')
})
