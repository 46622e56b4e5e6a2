import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { parseKeyTemplate } from '../../src/payload/object-key.ts'
import type { Target } from '../../src/providers/contract.ts'
import { github, publicUrlOf } from '../../src/providers/github.ts'
import { failureOf, openForge } from '../helpers/forges.ts'
import { fromPicGo } from '../helpers/from-picgo.ts'
import { describeProvider, objectOf } from '../helpers/provider-contract.ts'
import { type Emulate, startEmulate } from '../servers/emulate.ts'
import { startProxy } from '../servers/proxy.ts'
import { type RecordingProxy, startRecordingProxy } from '../servers/recording-proxy.ts'

const never = () => new AbortController().signal
const TOKEN = 'ghp_0123456789'

/** As a visitor with an account: emulate has no pages for others. */
async function visit(url: string, token: string): Promise<Buffer> {
  const reply = await fetch(url, { headers: { Authorization: `Bearer ${token}` } })
  if (!reply.ok) throw new Error(`${reply.status} for ${url}`)
  return Buffer.from(await reply.arrayBuffer())
}

describeProvider('github', async () => {
  const emulate = await startEmulate()
  const proxy = await startProxy([emulate.port])
  const { url, token, wrongToken } = emulate
  const repo = 'octo/hidden' // of what everybody may read, emulate tells nobody that they may not write
  const openAt = (port: number) => openForge(github, { apiUrl: `http://127.0.0.1:${port}`, token, repo })
  return {
    target: await openForge(github, { apiUrl: url, token, repo }),
    fetch: stored => visit(stored.url, token),
    secrets: [token, wrongToken],
    withBadCredentials: () => openForge(github, { apiUrl: url, token: wrongToken, repo }),
    breakable: async () => ({ ...proxy, target: await openAt(proxy.port) }),
    forgeable: { port: emulate.port, open: openAt },
    async close() {
      await proxy.close()
      await emulate.close()
    },
  }
})

describe('github at emulate', () => {
  let emulate: Emulate
  let proxy: RecordingProxy

  beforeAll(async () => {
    emulate = await startEmulate()
  })
  afterAll(() => emulate.close())
  beforeEach(async () => {
    proxy = await startRecordingProxy(emulate.url)
    onTestFinished(() => proxy.close())
  })

  async function open(options: Record<string, unknown> = {}): Promise<Target> {
    const target = await openForge(github, { apiUrl: proxy.url, token: emulate.token, ...options })
    onTestFinished(() => target.close?.())
    return target
  }

  const bodiesOf = (method: string) =>
    proxy.requests.filter(request => request.method === method).map(({ body }) => body)

  it('makes, replaces and removes a file', async () => {
    const target = await open({
      authorName: 'Ada',
      authorEmail: 'ada@example.com',
      commitMessage: 'Add {key}',
    })
    await target.put(objectOf('a/b c.png', Buffer.from('one')), never())
    await target.put(objectOf('a/b c.png', Buffer.from('two')), never())
    await target.put(objectOf('a/b c.png', Buffer.from('two')), never())
    await target.remove?.('a/b c.png', never())
    expect(proxy.exchanges).toEqual([
      ...['GET 404', 'PUT 201', 'GET 200', 'PUT 200', 'GET 200', 'GET 200', 'DELETE 200'],
    ])
    const author = { name: 'Ada', email: 'ada@example.com' }
    const commit = { message: 'Add a/b c.png', branch: 'main', author }
    const sha = expect.stringMatching(/^[0-9a-f]{40}$/)
    expect(bodiesOf('PUT')).toEqual([
      { ...commit, content: Buffer.from('one').toString('base64') },
      { ...commit, sha, content: Buffer.from('two').toString('base64') },
    ])
    expect(bodiesOf('DELETE')).toEqual([{ ...commit, message: 'Remove a/b c.png', sha }])
    expect(proxy.requests[0]?.headers).toMatchObject({
      accept: 'application/vnd.github.object+json',
      'x-github-api-version': '2022-11-28',
    })
  })

  it('makes the first commit and the branch of an empty repository', async () => {
    const target = await open({ repo: 'octo/empty' })
    const { url } = await target.put(objectOf('first.txt', Buffer.from('x')), never())
    expect((await visit(url.replace(proxy.url, emulate.url), emulate.token)).toString()).toBe('x')
  })

  it('fails at once on a protected branch, although GitHub answers 409', async () => {
    await fetch(`${emulate.url}/repos/octo/guarded/branches/main/protection`, {
      method: 'PUT',
      headers: { Authorization: `Bearer ${emulate.token}` },
      body: JSON.stringify({
        enforce_admins: true,
        required_pull_request_reviews: {},
        required_status_checks: null,
        restrictions: null,
      }),
    })
    const target = await open({ repo: 'octo/guarded' })
    const error = await failureOf(target.put(objectOf('a.txt', Buffer.from('x')), never()))
    expect(error.message).toMatch(/returned 409 \(the branch "main" is protected\): .* Allow/)
    expect(error.retryable).toBe(false)
    expect(proxy.exchanges).toEqual(['GET 404', 'PUT 409'])
  })

  it.each(['made', 'changed', 'removed'])('commits again when somebody else has %s the file', async what => {
    const target = await open()
    const other = await openForge(github, { apiUrl: emulate.url, token: emulate.token })
    onTestFinished(() => other.close?.())
    const key = `raced-${what}.txt`
    if (what !== 'made') await other.put(objectOf(key, Buffer.from('before')), never())
    let isFirst = true
    proxy.answerWith(async ({ method }) => {
      if (method !== 'PUT' || !isFirst) return
      isFirst = false
      if (what === 'removed') await other.remove?.(key, never())
      else await other.put(objectOf(key, Buffer.from('theirs')), never())
    })
    await target.put(objectOf(key, Buffer.from('ours')), never())
    expect(proxy.exchanges.filter(exchange => exchange.startsWith('PUT'))).toEqual([
      what === 'changed' ? 'PUT 409' : 'PUT 422',
      what === 'removed' ? 'PUT 201' : 'PUT 200',
    ])
  })

  it('does not send what jsDelivr would not hand out', async () => {
    const target = await github.open(
      github.config.parse({ repo: 'octo/img', token: TOKEN, cdn: 'jsdelivr' }),
      { name: 'Default', warn: expect.fail },
    )
    const object = { ...objectOf('large.png', Buffer.alloc(0)), size: 20 * 1024 * 1024 + 1 }
    const error = await failureOf(target.put(object, never()))
    expect(error).toMatchObject({
      code: 'too_large',
      message: expect.stringMatching(/than the limit of 20971520 bytes/),
    })
  })
})

describe('addresses for visitors', () => {
  const at = (options: object) =>
    publicUrlOf(github.config.parse({ repo: 'octo/img', token: TOKEN, ...options }))

  it.each([
    [{}, 'https://raw.githubusercontent.com/octo/img/main'],
    [{ branch: 'feature/x' }, 'https://raw.githubusercontent.com/octo/img/feature/x'],
    [{ apiUrl: 'https://api.github.com/' }, 'https://raw.githubusercontent.com/octo/img/main'],
    [{ cdn: 'raw' }, 'https://raw.githubusercontent.com/octo/img/main'],
    [{ cdn: 'jsdelivr', branch: 'v1' }, 'https://cdn.jsdelivr.net/gh/octo/img@v1'],
    [{ apiUrl: 'https://git.example.com/api/v3' }, 'https://git.example.com/octo/img/raw/main'],
    [{ apiUrl: 'https://api.octo.ghe.com' }, 'https://octo.ghe.com/octo/img/raw/main'],
  ])('%j: %s', (options, url) => {
    expect(at(options)).toBe(url)
  })
})

describe('options', () => {
  const parse = (options: object) => github.config.safeParse({ repo: 'octo/img', token: TOKEN, ...options })

  it.each([
    [{ repo: 'img' }, /owner\/name/],
    [{ repo: 'https://github.com/octo/img' }, /owner\/name/],
    [{ repo: 'octo/img/sub' }, /owner\/name/],
    [{ branch: 'a b' }, /valid branch name/],
    [{ commitMessage: 'Add {name}' }, /unknown placeholder\. Available: \{filename\}, \{key\}/],
    [{ apiUrl: 'api.github.com' }, /http or https URL/],
    [{ urlPrefix: 'https://x.example/?a=' }, /must not have a query/],
    [{ fileSize: 0 }, /./],
    [{ token: '' }, /./],
  ])('%j is refused', (options, message) => {
    expect(parse(options).error?.issues[0]?.message).toMatch(message)
  })

  it.each([
    [{ authorName: 'Ada' }, /both "authorName" and "authorEmail"/],
    [{ authorEmail: 'a@example.com' }, /both "authorName" and "authorEmail"/],
    [{ cdn: 'jsdelivr', urlPrefix: 'https://x.example' }, /"urlPrefix" or "cdn", not both/],
    [{ cdn: 'jsdelivr', branch: 'a/b' }, /not support branch names with "\/"/],
    [{ cdn: 'jsdelivr', apiUrl: 'https://git.example.com/api/v3' }, /of github\.com only/],
  ])('%j contradict each other', (options, message) => {
    expect(github.validate?.(github.config.parse({ repo: 'octo/img', token: TOKEN, ...options }))).toMatch(
      message,
    )
  })
})

describe('options of PicGo', () => {
  it.each([
    [
      { path: 'img/', customUrl: 'https://cdn.jsdelivr.net/gh/octo/img@main/', branch: undefined },
      'img/',
      'https://cdn.jsdelivr.net/gh/octo/img@main',
    ],
    [{ path: '/a/b', customUrl: '', branch: 'main' }, 'a/b/', undefined],
  ])('%j', async (old, folder, urlPrefix) => {
    const common = { repo: ' octo/img ', token: TOKEN }
    const { options, notes } = fromPicGo(github, { ...common, ...old })
    expect(options).toEqual({
      ...{ repo: 'octo/img', token: TOKEN, branch: old.branch ?? 'master', urlPrefix },
      keyTemplate: `${folder}{filename}-{sha256-8}{extname}`,
    })
    expect(notes).toEqual([])
    parseKeyTemplate(options['keyTemplate'] as string)
    const { keyTemplate: _, ...own } = options
    expect(github.config.safeParse(own).error).toBeUndefined()
  })

  it.each([
    [{ path: '../up' }, /"path" was not imported/],
    [{ path: '{x}' }, /"path" was not imported/],
    [{ customUrl: 'img.example.com' }, /"customUrl" has no scheme, so https was assumed/],
    [{ customUrl: 'https://img.example.com/?x=' }, /"customUrl" was not imported/],
  ])('that cannot be carried over are named: %j', (old, note) => {
    const { notes } = fromPicGo(github, { repo: 'o/i', token: TOKEN, ...old })
    expect(notes.join('\n')).toMatch(note)
  })
})
