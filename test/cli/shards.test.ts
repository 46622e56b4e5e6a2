import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { startApp } from '../helpers/start-app.ts'
import { type CommentForgeKind, pageOf, TOKEN } from '../servers/comment-forge.ts'
import { KEY, KEYED, makeJob } from './comment-job.ts'
import { runCli } from './run-cli.ts'

const SHARDS = [1, 2, 3, 4]

/** A server, a Git host, and a folder of pictures for each shard. `run` uploads that of one, as a job does. */
async function prepare(kind: CommentForgeKind) {
  const app = await startApp({ config: KEYED })
  const { cwd, forge, write } = await makeJob(kind)
  for (const shard of SHARDS)
    for (const [index, name] of ['a', 'b', 'c'].entries())
      await write(`${shard}/Card/${name}${shard}.png`, shard * 10 + index * 60)
  const run = (shard: number, job: string, ...more: string[]) => {
    const place = `--server ${app.url} --key ${KEY} --baseline visual --shard ${shard}/4 --job ${job}`.split(
      ' ',
    )
    const pull = ['--comment', '--pr', pageOf(forge, kind), '--comment-token', TOKEN, '--comment-name', 'e2e']
    return runCli(['upload', ...place, ...pull, ...more, `${shard}`], { cwd, env: {} })
  }
  const runAll = (job: string, ...more: string[]) =>
    Promise.all(SHARDS.map(shard => run(shard, job, ...more)))
  return { cwd, forge, write, run, runAll }
}

describe.each<CommentForgeKind>(['github', 'gitlab', 'gitea'])('shards of one run at %s', kind => {
  it('that run at the same time write one comment, one status and one baseline, and a shard may be run again', async () => {
    const { cwd, forge, write, run, runAll } = await prepare(kind)
    for (const { code, stderr } of await runAll('main-1', '--update-baseline', 'always'))
      expect(code, stderr).toBe(0)
    expect(forge.comments.map(({ body }) => body.match(/\d+ new.*(?=\*\*)/)?.[0])).toEqual(['12 new'])

    for (const shard of SHARDS) await write(`${shard}/Card/a${shard}.png`, 200 + shard)
    await rm(join(cwd, '3/Card/b3.png'))
    const judged = ['--fail-on', 'changed,gone', '--status']
    for (const { code, stderr } of await runAll('pull-1', ...judged)) expect(code, stderr).toBe(0)
    expect(forge.comments).toHaveLength(1)
    const totals = () => forge.comments[0]?.body.match(/\*\*(.*)\*\*/)?.[1]
    expect(totals()).toBe('4 changed · 1 gone · 7 the same')
    expect(forge.statuses.at(-1)).toMatchObject({
      state: kind === 'gitlab' ? 'failed' : 'failure',
      description: '4 changed · 1 gone',
    })

    await write('3/Card/b3.png', 3 * 10 + 60)
    expect((await run(3, 'pull-1', ...judged)).code).toBe(0)
    expect(totals()).toBe('4 changed · 8 the same')
    expect(forge.comments).toHaveLength(1)
  })
})

it('until all shards are there, nothing is gone, the status is pending, and a tick of the box stays', async () => {
  const { forge, run, runAll, write } = await prepare('github')
  await runAll('main-1', '--update-baseline', 'always')
  await write('1/Card/a1.png', 250)
  const judged = ['--fail-on', 'changed,gone']
  expect((await runAll('pull-1', ...judged)).map(({ code }) => code)).toContain(1)
  const [comment] = forge.comments
  if (comment) comment.body = comment.body.replace('- [ ] I have', '- [x] I have')
  for (const shard of [2, 3]) expect((await run(shard, 'pull-2', ...judged, '--status')).code).toBe(0)
  expect(comment?.body).toContain('6 the same · 2 of 4 shards')
  expect(comment?.body).toContain('- [x] I have')
  expect(forge.statuses.at(-1)).toMatchObject({ state: 'pending', description: '2 of 4 shards' })
  await run(1, 'pull-2', ...judged, '--status')
  await run(4, 'pull-2', ...judged, '--status')
  expect(forge.statuses.at(-1)).toMatchObject({ state: 'success', description: '1 changed, reviewed' })
  expect(comment?.body).toContain('**1 changed · 11 the same**')
})

it.each([
  [['--shard', '0/4', '--comment'], /Must be the number of a shard/],
  [['--shard', '5/4', '--comment'], /Must be the number of a shard/],
  [['--shard', '1/4'], /--shard requires --comment, --report or --baseline/],
  [['--shard', '1/4', '--report', 'r.html'], /Pass the same --job ID to all shards/],
])('refuses %j', async (args, says) => {
  const { code, stderr } = await runCli(['upload', ...args, 'a.png'], { cwd: await makeDirectory(), env: {} })
  expect([code, stderr]).toEqual([2, expect.stringMatching(says)])
})
