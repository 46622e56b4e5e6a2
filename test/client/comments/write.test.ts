import { afterEach, describe, expect, it } from 'vitest'
import { readPullRequestUrl } from '../../../src/client/comments/ci-job.ts'
import { type CommentRequest, type Written, writeComment } from '../../../src/client/comments/comment.ts'
import { openForge } from '../../../src/client/comments/forge.ts'
import { failureOf } from '../../helpers/failure-of.ts'
import {
  type Author,
  type CommentForge,
  type CommentForgeKind,
  pageOf,
  startCommentForge,
  TOKEN,
} from '../../servers/comment-forge.ts'

const never = () => new AbortController().signal
const OTHER: Author = { name: 'somebody' }

type Given = Partial<CommentRequest> & { token?: string }

const writeTo = (
  forge: CommentForge,
  kind: CommentForgeKind,
  { token = TOKEN, ...given }: Given = {},
): Promise<Written> => {
  const client = openForge(readPullRequestUrl(pageOf(forge, kind)), token)
  const request = { name: 'CI / e2e', run: 1, body: 'one', ...given }
  return writeComment(client, request, never()).finally(client.close)
}
const bodiesOf = ({ comments }: CommentForge) =>
  comments.map(({ body }) => body.split('\n').slice(1).join('\n'))

describe.each<CommentForgeKind>(['github', 'gitea', 'gitlab'])('a comment at %s', kind => {
  let forge: CommentForge
  afterEach(() => forge.close())

  const write = (given?: Given) => writeTo(forge, kind, given)
  const bodies = () => bodiesOf(forge)

  it('is written once, and brought up to date by the next run, among many others', async () => {
    forge = await startCommentForge(kind)
    for (let i = 0; i < 7; i++) forge.write(OTHER, 'words')
    expect(await write()).toBe('created')
    forge.write(OTHER, 'more words')
    expect(await write({ run: 2, body: 'two' })).toBe('updated')
    expect(await write({ run: 2, body: 'two' })).toBe('unchanged')
    expect(forge.comments).toHaveLength(9)
    expect(forge.comments[7]?.body).toBe('<!-- upload-server comment CI%20%2F%20e2e run 2 -->\ntwo')
  })

  it('is not that of a job beside it', async () => {
    forge = await startCommentForge(kind)
    await Promise.all(['a', 'b', 'a--> b'].map(name => write({ name, body: name })))
    await Promise.all(['a', 'b', 'a--> b'].map(name => write({ name, body: `${name} again`, run: 2 })))
    expect(bodies().sort()).toEqual(['a again', 'a--> b again', 'b again'])
    for (const { body } of forge.comments) expect(body.indexOf('--', 4)).toBe(body.indexOf('-->'))
  })

  it('stays what a later run has made of it', async () => {
    forge = await startCommentForge(kind)
    await write({ run: 3, body: 'three' })
    expect(await write({ run: 2, body: 'two' })).toBe('stale')
    expect(bodies()).toEqual(['three'])
  })

  it('is one when two runs begin at once', async () => {
    forge = await startCommentForge(kind)
    const results = await Promise.all([write(), write({ run: 2, body: 'two' })])
    expect(results).toContain('created')
    expect(bodies()).toEqual(['two'])
  })

  it('is written anew when somebody removes it meanwhile', async () => {
    forge = await startCommentForge(kind)
    await write()
    forge.before = ({ method }) =>
      void (method === 'PATCH' || method === 'PUT' ? forge.comments.splice(0) : 0)
    expect(await write({ run: 2, body: 'two' })).toBe('created')
    expect(bodies()).toEqual(['two'])
  })

  it('attack: of somebody who has copied its mark is left alone', async () => {
    forge = await startCommentForge(kind)
    await write()
    const [own] = forge.comments.splice(0)
    forge.write(OTHER, own?.body ?? '')
    expect(await write({ run: 2, body: 'two' })).toBe('created')
    expect(bodies()).toEqual(['one', 'two'])
  })

  it('waits for a forge that takes no more requests for a moment', async () => {
    forge = await startCommentForge(kind)
    // GitHub's secondary rate limit is a 403, for the list and for the new comment.
    const tooMany = (status: number) => () => ({
      status,
      headers: { 'Retry-After': '0' },
      body: { message: 'slow' },
    })
    forge.instead.push(tooMany(429), () => ({ status: 502, body: 'Bad Gateway' }), tooMany(403))
    forge.before = ({ method }) => {
      if (method !== 'POST') return
      forge.instead.push(tooMany(403))
      forge.before = () => {}
    }
    expect(await write()).toBe('created')
  })

  it('is written once when the answer is lost', async () => {
    forge = await startCommentForge(kind)
    let isFirst = true
    forge.before = ({ method, body }) => {
      if (method !== 'POST' || !isFirst) return
      isFirst = false
      forge.write({ name: 'ci' }, (body as { body: string }).body)
      forge.instead.push(() => ({ status: 0 }))
    }
    expect(await write()).toBe('unchanged')
    expect(bodies()).toEqual(['one'])
  })

  it('says what the token lacks, and never shows it', async () => {
    forge = await startCommentForge(kind)
    const wrong = await failureOf(write({ token: 'wrong-token' }))
    expect(wrong.message).toMatch(/returned 401.*To write a comment, .*Bad credentials/)
    forge.instead.push(() => ({ status: 403, body: { message: `no: ${TOKEN}` } }))
    const denied = await failureOf(write())
    expect(denied.message).toMatch(/returned 403/)
    expect(denied.message + wrong.message).not.toMatch(/to-ken|wrong-token/)
  })

  it('attack: a next page elsewhere does not get the token', async () => {
    forge = await startCommentForge(kind)
    const thief = await startCommentForge(kind)
    forge.instead.push(() => ({ status: 200, headers: { Link: `<${thief.url}/x>; rel="next"` }, body: [] }))
    await write()
    expect(thief.asked).toEqual([])
    await thief.close()
  })

  it('is not looked for in what is no forge', async () => {
    forge = await startCommentForge(kind)
    forge.instead.push(() => ({ status: 200, body: { hello: 'world' } }))
    expect((await failureOf(write())).message).toContain('did not respond like the API of a Git host')
  })
})

// Tokens of GitLab all have an account.
describe.each<[CommentForgeKind, Author]>([
  ['github', { name: 'github-actions[bot]', isBot: true }],
  ['github', { name: 'our-app[bot]', isBot: true, mayAsk: false }],
  ['gitea', { name: 'gitea-actions', isBot: true }],
])('a comment at %s by the program %j', (kind, self) => {
  it('attack: of another program that has copied its mark is left alone, and no second one is written', async () => {
    const forge = await startCommentForge(kind, self)
    await writeTo(forge, kind)
    const mark = forge.comments.splice(0)[0]?.body ?? ''
    for (const name of ['echo[bot]', 'ghost']) forge.write({ name, isBot: true }, mark)
    forge.write({ name: self.name === 'gitea-actions' ? 'gitea' : self.name.replace('[bot]', '') }, mark)
    forge.write(OTHER, mark)
    const copies = ['one', 'one', 'one', 'one']
    expect(await writeTo(forge, kind, { run: 2, body: 'two' })).toBe('created')
    expect(await writeTo(forge, kind, { run: 3, body: 'three' })).toBe('updated')
    expect(bodiesOf(forge)).toEqual([...copies, 'three'])
    await forge.close()
  })
})
