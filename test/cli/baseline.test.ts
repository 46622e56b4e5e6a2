import { copyFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { startApp } from '../helpers/start-app.ts'
import { ACTIONS_JOB, COMMIT, TOKEN } from '../servers/comment-forge.ts'
import { KEY, KEYED, makeJob } from './comment-job.ts'
import { runCli } from './run-cli.ts'

/** A server, a Git host, and a folder of pictures; `run` uploads it on a branch. */
async function prepare() {
  const app = await startApp({ config: KEYED })
  const { cwd, forge, body, write: writeFileOf } = await makeJob()
  const write = (name: string, red: number) => writeFileOf(`shots/${name}`, red)
  const repository = { default_branch: 'main' }
  // A fork may call its branch as it likes, but can't push to this repository.
  for (const event of ['pull_request', 'push']) {
    const workflow_run = { event, head_branch: 'main' }
    await writeFileOf(`${event}.json`, JSON.stringify({ repository, workflow_run }))
  }
  for (const [index, name] of ['a.png', 'b.png', 'Card/c.png', 'Card/d.png'].entries())
    await write(name, index * 60)
  const job = {
    ...{ ...ACTIONS_JOB, GITHUB_API_URL: forge.api, GITHUB_SERVER_URL: 'https://github.com' },
    ...{ GITHUB_SHA: COMMIT, GITHUB_EVENT_PATH: join(cwd, 'pull_request.json'), GITHUB_TOKEN: TOKEN },
  }
  const on = {
    main: { GITHUB_EVENT_NAME: 'push', GITHUB_REF: 'refs/heads/main' },
    other: { GITHUB_EVENT_NAME: 'push', GITHUB_REF: 'refs/heads/other' },
    pull: { GITHUB_EVENT_NAME: 'pull_request', GITHUB_REF: 'refs/pull/7/merge' },
    fork: { GITHUB_EVENT_NAME: 'workflow_run', GITHUB_REF: 'refs/heads/main' },
    following: {
      GITHUB_EVENT_NAME: 'workflow_run',
      GITHUB_REF: 'refs/heads/main',
      GITHUB_EVENT_PATH: join(cwd, 'push.json'),
    },
  }
  const run = (branch: keyof typeof on, more: string[] = [], id = 100, key = KEY) => {
    const args = ['--server', app.url, '--key', key, '--baseline', 'visual', '--format', 'json', ...more]
    return runCli(['upload', ...args, 'shots'], {
      cwd,
      env: { ...job, ...on[branch], GITHUB_RUN_ID: String(id) },
    })
  }
  const upload = ['--server', app.url, '--key', KEY]
  /** Uploads the pictures of two shards, and writes a list of each. */
  const list = async (names: readonly string[]) => {
    for (const [index, what] of [['shots/a.png', 'shots/b.png'], ['shots/Card']].entries()) {
      const { stdout } = await runCli(['upload', ...upload, '--format', 'json', ...what], { cwd, env: {} })
      await writeFile(join(cwd, names[index] ?? ''), stdout)
    }
    return names
  }
  const comment = (branch: keyof typeof on, lists: readonly string[], ...more: string[]) => {
    const env = { ...job, ...on[branch], GITHUB_RUN_ID: '100' }
    return runCli(['comment', ...upload, '--baseline', 'visual', ...more, ...lists], { cwd, env })
  }
  return { app, cwd, forge, body, write, run, list, comment }
}

it('compares with what the default branch has stored, and fetches only what has another hash', async () => {
  const { app, cwd, body, write, run } = await prepare()
  const first = await run('main', ['--comment'])
  expect(first, first.stderr).toMatchObject({ code: 0 })
  expect(first.stderr).toContain('There is no baseline "visual" at this destination yet.')
  expect(first.stderr).toContain('Compared with visual: 4 new.')
  const stored = JSON.parse(first.stdout) as { name: string; url: string }[]

  await write('a.png', 200)
  await rm(join(cwd, 'shots/b.png'))
  await rename(join(cwd, 'shots/Card/c.png'), join(cwd, 'shots/Card/moved.png'))
  await write('new.png', 250)
  const { code, stderr } = await run('pull', ['--comment', '--fail-on', 'changed'])
  expect(stderr).toContain('Compared with visual: 1 changed · 1 new · 1 gone · 1 renamed · 1 the same.')
  expect(code, stderr).toBe(1)
  const linkOf = (name: string) => stored.find(one => one.name === `shots/${name}`)?.url
  expect(body()).toContain(`src="${linkOf('a.png')}"`)
  expect(body()).toMatch(/<code>a\.png<\/code>: 100 % of the pixels changed/)
  expect(body()).toContain(`- gone: [<code>b.png</code>](${linkOf('b.png')})`)
  expect(body()).toContain('- renamed: <code>Card/c.png</code> to [<code>Card/moved.png</code>](')
  const requests = app.log.map(({ req }) => req as { method: string; path: string } | undefined)
  const fetched = requests.filter(req => req?.method === 'GET' && req.path.endsWith('.png'))
  expect(fetched.map(req => `${app.url}${req?.path}`)).toEqual([linkOf('a.png')])

  // The pull request has stored no baseline.
  expect((await run('pull')).stderr).toContain('1 changed · 1 new · 1 gone · 1 renamed · 1 the same.')
})

it.each([
  ['another branch', 'other', [], false],
  ['a workflow that follows that of a fork', 'fork', [], false],
  ['a workflow that follows a push to the default branch', 'following', [], true],
  ['a pull request', 'pull', [], false],
  ['the default branch', 'main', [], true],
  ['the default branch, which may not', 'main', ['--update-baseline', 'never'], false],
  ['another branch, which must', 'other', ['--update-baseline', 'always'], true],
] as const)('a job of %s stores the baseline or not', async (_, branch, more, isStored) => {
  const { run } = await prepare()
  expect((await run(branch, [...more])).code).toBe(0)
  expect((await run('pull')).stderr).toContain(`Compared with visual: 4 ${isStored ? 'the same' : 'new'}.`)
})

it('the baseline of a later run stays, and that of a run that failed is none', async () => {
  const { cwd, write, run } = await prepare()
  await run('main', [], 200)
  await write('a.png', 200)
  const earlier = await run('main', [], 150)
  expect(earlier.stderr).toContain('The baseline "visual" stays as it is: a later run has already stored it.')
  const half = await run('main', ['nowhere.png'], 300)
  expect(half).toMatchObject({ code: 3 })
  expect(half.stderr).toContain('stays as it is: 1 of 5 files failed.')
  expect((await run('pull')).stderr).toContain('1 changed · 3 the same.')
  await copyFile(join(cwd, 'shots/a.png'), join(cwd, 'shots/b.png'))
  expect((await run('main', ['--update-baseline', 'always'], 1)).code).toBe(0)
  expect((await run('pull')).stderr).toContain('Compared with visual: 4 the same.')
})

it('a wrong key fails as that of any upload', async () => {
  const { run } = await prepare()
  const { code, stderr } = await run('pull', ['--quiet'], 100, 'a-guess-at-the-key')
  expect(code).toBe(5)
  expect(stderr).toContain('Could not look for the baseline "visual": Missing or invalid upload key.')
})

it('attack: the list of another key is no baseline', async () => {
  const { run } = await prepare()
  await run('main', [], 100, 'k3y-of-somebody-else')
  expect((await run('pull')).stderr).toContain('There is no baseline "visual" at this destination yet.')
})

it('attack: a list whose links lead to the private network, and whose names lead out of a folder', async () => {
  const { app, cwd, write, run } = await prepare()
  const hidden = await startApp({ config: { auth: { loopbackExempt: true } } })
  await run('main')
  await write('a.png', 200)
  const row = (name: string, url: string) => ({ name, state: 'new', after: { name, url, sha256: 'x' } })
  const list = {
    run: { commit: '<script>', url: 'javascript:alert(1)', id: 'x' },
    rows: [row('a.png', `${hidden.url}/a.png`), row('../../../etc/passwd', 'https://img.example.com/x')],
  }
  const sendList = async (text: string) => {
    await writeFile(join(cwd, 'visual.review.json'), text)
    const args = ['upload', '--server', app.url, '-k', KEY, 'visual.review.json']
    expect(await runCli(args, { cwd })).toMatchObject({ code: 0 })
  }
  await sendList(JSON.stringify(list))
  const { code, stderr } = await run('pull', ['--comment'])
  expect(code, stderr).toBe(0)
  expect(stderr).toMatch(/1 images count as changed, because they could not be fetched: .*has a private IP/)
  expect(stderr).toContain('1 changed · 3 new · 1 gone')
  expect(hidden.log.filter(({ method }) => method === 'GET')).toEqual([])
  for (const text of [
    '{"rows":[{"name":5}]}',
    'nonsense',
    JSON.stringify([{ name: 'a', url: 'file:///etc' }]),
  ]) {
    await sendList(text)
    expect((await run('pull')).stderr).toContain('The baseline "visual" is gone or damaged.')
  }
})

it('the command comment compares, draws, fails and stores the baseline as upload does, from the results of shards', async () => {
  const { cwd, forge, body, write, comment, list } = await prepare()
  const lists = ['a.json', 'b.json']
  const main = await comment('main', await list(lists))
  expect(main.stderr).toContain('Compared with visual: 4 new.')
  forge.comments.splice(0)
  await write('a.png', 200)
  await list(lists)
  const dry = await comment('pull', lists, '--dry-run')
  expect(dry.stdout).toMatch(/\*\*1 changed · 3 the same\*\*[\s\S]*100 % of the pixels/)
  expect(forge.comments).toEqual([])
  const judged = ['--fail-on', 'changed', '--report', 'report.html']
  const { code, stderr } = await comment('pull', lists, ...judged, '--status')
  expect(code, stderr).toBe(0)
  expect(forge.statuses).toMatchObject([{ state: 'failure', description: '1 changed' }])
  expect(body()).toMatch(/src="[^"]+\/difference-a-\w+\.png"[\s\S]*report-\w+\.html/)
  expect((await comment('pull', lists, ...judged)).code).toBe(1)
  const alone = await runCli(['comment', '--baseline', 'visual', ...lists], { cwd, env: {} })
  expect(alone).toMatchObject({ code: 2, stderr: expect.stringContaining('--baseline requires --server') })
})
