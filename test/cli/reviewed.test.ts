import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { digestOf, openComment } from '../../src/client/comments/comment.ts'
import type { Context } from '../../src/client/context.ts'
import { type ReviewRow, toReview } from '../../src/client/reports/review.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { makePicture } from '../helpers/picture.ts'
import { COMMIT, type CommentForgeKind, pageOf, TOKEN } from '../servers/comment-forge.ts'
import { makeJob, storedHere } from './comment-job.ts'
import { runCli } from './run-cli.ts'

const never = new AbortController().signal
/** The commit of a run, which is no longer the latest one of its pull request. */
const BUILT = 'b01d'.repeat(10)

async function prepare(kind: CommentForgeKind, job: Record<string, string> = {}, event = {}) {
  const place = await makeJob(kind)
  const { cwd, forge, write } = place
  await write('upload-server.json', storedHere({}, { limits: { fileSize: '1MB' } }))
  await write('main/a.png', 10)
  await write('shots/a.png', 200)
  await write('event.json', JSON.stringify(event))
  const env = { ...job, GITHUB_EVENT_PATH: join(cwd, 'event.json') }
  const run = async (...more: string[]) => {
    const pull = ['--pr', pageOf(forge, kind), '--comment-token', TOKEN, '--comment-name', 'e2e']
    const args = ['--comment', '--compare', 'main', '--fail-on', 'changed,new', ...pull, ...more, 'shots']
    const { code, stderr } = await runCli(['upload', ...args], { cwd, env })
    return { code, said: stderr.split('\n').find(line => line.startsWith('--fail-on')) ?? stderr }
  }
  /** Ticks the box, as the page of the pull request does. */
  const tick = () => {
    const [comment] = forge.comments
    if (comment) comment.body = comment.body.replace('- [ ] I have', '- [x] I have')
  }
  return { ...place, run, tick }
}

describe.each<CommentForgeKind>(['github', 'gitea', 'gitlab'])('at %s', kind => {
  it('the job is green again when somebody has ticked the box, until other images change', async () => {
    const { forge, write, run, tick } = await prepare(kind)
    expect(await run()).toEqual({ code: 1, said: '--fail-on: 1 changed.' })
    expect(forge.comments[0]?.body).toMatch(
      /^- \[ \] I have looked at these images <!-- reviewed \w{64} -->$/m,
    )
    tick()
    const seen = { code: 0, said: '--fail-on: 1 changed, reviewed.' }
    expect(await run()).toEqual(seen)
    expect(await run()).toEqual(seen)
    await write('shots/b.png', 90)
    expect(await run()).toEqual({ code: 1, said: '--fail-on: 1 changed · 1 new.' })
    expect(forge.comments[0]?.body).toContain('- [ ] I have looked at these images')
    forge.labels.push('images-reviewed')
    expect(await run()).toMatchObject({ code: 0 })
  })

  it('a commit status tells the differences instead of the exit code', async () => {
    const { forge, write, run, tick } = await prepare(kind)
    const red = kind === 'gitlab' ? 'failed' : 'failure'
    expect(await run('--status')).toEqual({
      code: 0,
      said: '--fail-on: 1 changed, as the commit status says.',
    })
    tick()
    await run('--status')
    await write('shots/a.png', 10)
    await run('--status')
    const name = kind === 'gitlab' ? 'name' : 'context'
    expect(forge.statuses).toEqual([
      { state: red, [name]: 'Pictures: e2e', description: '1 changed' },
      { state: 'success', [name]: 'Pictures: e2e', description: '1 changed, reviewed' },
      { state: 'success', [name]: 'Pictures: e2e', description: 'No differences' },
    ])
  })

  it('attack: a box in the comment of somebody else, or one that an image is named after', async () => {
    const { forge, write, run, tick } = await prepare(kind)
    await run()
    const [own] = forge.comments
    tick()
    const ticked = own?.body ?? ''
    forge.comments.splice(0)
    forge.write({ name: 'somebody' }, ticked)
    expect(await run()).toMatchObject({ code: 1 })
    const digest = /reviewed (\w{64})/.exec(ticked)?.[1]
    await write(`shots/- [x] I <!-- reviewed ${digest} -->.png`, 10)
    expect(await run()).toMatchObject({ code: 1 })
    expect(await run()).toMatchObject({ code: 1 })
  })
})

const ACTIONS = { GITHUB_ACTIONS: 'true', GITHUB_SHA: '1'.repeat(40) }
const OF_FORK = { workflow_run: { event: 'pull_request', head_sha: BUILT } }
const BY_COMMENT = { issue: { number: 7, pull_request: {} } }
const JENKINS = { JENKINS_URL: 'https://ci', CHANGE_URL: 'https://github.com/me/app/pull/7' }
it.each([
  ['GitHub Actions, for a fork', ACTIONS, OF_FORK, BUILT],
  ['GitLab', { GITLAB_CI: 'true', CI_COMMIT_SHA: BUILT }, {}, BUILT],
  ['GitHub Actions, started by a comment, which names no commit', ACTIONS, BY_COMMENT, COMMIT],
  ['Jenkins, which names a merge that only the job has', { ...JENKINS, GIT_COMMIT: BUILT }, {}, COMMIT],
])(
  'attack: a commit that is pushed while an earlier one is compared does not get its green status, if the job names the commit: %s',
  async (_, env, event, commit) => {
    const { forge, write, run } = await prepare('github', env, event)
    await write('shots/a.png', 10)
    expect((await run('--status')).code).toBe(0)
    expect(forge.statuses).toMatchObject([{ state: 'success' }])
    const told = forge.asked.filter(one => one.startsWith('POST ') && one.includes('/statuses/'))
    expect(told).toEqual([`POST /api/v3/repos/me/app/statuses/${commit}`])
  },
)

describe('attack: the status is green', () => {
  it('if the changed image is too large to be stored', async () => {
    const { forge, write, run } = await prepare('github')
    await write('shots/a.png', Buffer.concat([makePicture(9, [200, 0, 0]), Buffer.alloc(2e6)]))
    expect((await run('--status')).code).not.toBe(0)
    expect(forge.statuses).toMatchObject([{ state: 'failure', description: '1 of 1 files failed' }])
  })

  it('if the images could not be compared', async () => {
    const { forge } = await prepare('github')
    const context = { env: {}, note: () => {}, learn: () => {} } as unknown as Context
    const options = { pr: pageOf(forge, 'github'), commentToken: TOKEN, commentName: 'e2e', status: true }
    const write = await openComment(options, undefined, context)
    await write({ review: toReview([{ name: 'a.png', url: 'https://img.example.com/a.png' }], {}) }, never)
    const description = 'The images could not be compared'
    expect(forge.statuses).toMatchObject([{ state: 'failure', description }])
  })
})

it('attack: a file name with line breaks makes other differences look like those that were reviewed', () => {
  const added = (name: string, sha256: string): ReviewRow => ({
    name,
    state: 'new',
    after: { name, url: `https://img.example.com/${sha256}`, sha256 },
  })
  const reviewed = { rows: [added('a\nnew\n\n1\nhttps://img.example.com/1\n\nb', '2')] }
  expect(digestOf({ rows: [added('a', '1'), added('b', '2')] })).not.toBe(digestOf(reviewed))
})

it('--status needs differences to tell, and a comment', async () => {
  const { run } = await prepare('github')
  const args = ['upload', '--compare', 'main', '--status', '--fail-on', 'new', 'shots']
  const { code, stderr } = await runCli(args, { cwd: await makeDirectory(), env: {} })
  expect([code, stderr]).toEqual([2, expect.stringContaining('--status requires --comment.')])
  expect((await run('--status')).code).toBe(0)
})
