import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { makeDirectory } from '../helpers/directory.ts'
import { makePicture } from '../helpers/picture.ts'
import { type CommentForge, pageOf, startCommentForge, TOKEN } from '../servers/comment-forge.ts'
import { runBuilt, runCli } from './run-cli.ts'

async function startForge(): Promise<CommentForge> {
  const forge = await startCommentForge('github')
  onTestFinished(() => forge.close())
  return forge
}

const actions = (forge: CommentForge, env: Record<string, string> = {}) => ({
  GITHUB_ACTIONS: 'true',
  GITHUB_API_URL: forge.api,
  GITHUB_REPOSITORY: 'me/app',
  GITHUB_REF: 'refs/pull/7/merge',
  GITHUB_WORKFLOW: 'CI',
  GITHUB_JOB: 'e2e',
  GITHUB_RUN_NUMBER: '1',
  GITHUB_RUN_ATTEMPT: '1',
  GITHUB_TOKEN: TOKEN,
  ...env,
})

const result = (name: string, sha256: string) => ({
  ...{
    name,
    sha256,
    url: `https://img.example.com/${sha256}.png`,
    type: 'image/png',
    size: 9,
    width: 30,
    height: 20,
  },
})

/** A folder that uploads go to, and pictures of two times in it. */
async function prepare() {
  const cwd = await makeDirectory()
  const local = { directory: 'stored', urlPrefix: 'https://img.example.com' }
  await writeFile(
    join(cwd, 'upload-server.json'),
    JSON.stringify({ providers: { local: { Default: local } } }),
  )
  for (const folder of ['main/deep', 'shots/deep']) await mkdir(join(cwd, folder), { recursive: true })
  await writeFile(join(cwd, 'shots/login.png'), makePicture())
  await writeFile(join(cwd, 'main/login.png'), makePicture())
  await writeFile(join(cwd, 'shots/deep/menu.png'), makePicture())
  await copyFile(join(cwd, 'shots/deep/menu.png'), join(cwd, 'main/deep/menu.png'))
  await writeFile(join(cwd, 'main/old.png'), makePicture())
  await writeFile(join(cwd, 'shots/new.png'), makePicture())
  return cwd
}

describe('upload --comment', () => {
  it('writes one comment, brings it up to date, and shows how pictures were before', async () => {
    const [cwd, forge] = [await prepare(), await startForge()]
    const first = await runCli(['upload', '--comment', 'shots'], { cwd, env: actions(forge) })
    expect(first).toMatchObject({ code: 0, stderr: expect.stringContaining('A comment was written.') })
    expect(first.stdout.trim().split('\n')).toHaveLength(3)
    expect(forge.comments[0]?.body).toContain('### Pictures\n\n**3 of 3 stored')
    for (const link of first.stdout.trim().split('\n'))
      expect(forge.comments[0]?.body).toContain(`src="${link}"`)

    const args = ['upload', '--comment', '--compare', 'main', '--comment-title', 'Screens', 'shots']
    const second = await runCli(args, { cwd, env: actions(forge, { GITHUB_RUN_NUMBER: '2' }) })
    expect(second).toMatchObject({ code: 0, stdout: first.stdout })
    expect(forge.comments).toHaveLength(1)
    const body = forge.comments[0]?.body ?? ''
    expect(body).toContain('### Screens\n\n**1 changed, 1 new, 1 gone, 1 the same**')
    expect(body).toMatch(/\| shots\/login\.png \| <a .*before-login-.*<\/a>.* \| <a .*\/login-.*<\/a>.* \|/)
    expect(body).toContain('- gone: main/old.png')
    expect(body).not.toContain('menu')
  })

  it('keeps what was before from being written over what is now', async () => {
    const [cwd, forge] = [await prepare(), await startForge()]
    const local = {
      directory: 'stored',
      urlPrefix: 'https://img.example.com',
      keyTemplate: '{filename}{extname}',
    }
    await writeFile(
      join(cwd, 'upload-server.json'),
      JSON.stringify({ providers: { local: { Default: local } } }),
    )
    await runCli(['upload', '--comment', '--compare', 'main', 'shots'], { cwd, env: actions(forge) })
    expect(forge.comments[0]?.body).toContain('https://img.example.com/before-login.png')
    expect(forge.comments[0]?.body).toContain('https://img.example.com/login.png')
  })

  it('says what failed in the comment, and when the comment itself failed', async () => {
    const [cwd, forge] = [await prepare(), await startForge()]
    const half = await runCli(['upload', '--comment', 'shots/new.png', '@all.png'], {
      cwd,
      env: actions(forge),
    })
    expect(half.code).toBe(3)
    expect(forge.comments[0]?.body).toContain('- ❌ @\u200ball.png: ')
    const wrong = actions(forge, { GITHUB_TOKEN: 'wrong-token' })
    const failed = await runCli(['upload', '--comment', 'shots/new.png'], { cwd, env: wrong })
    expect(failed).toMatchObject({ code: 1, stdout: expect.stringContaining('/new-') })
    expect(failed.stderr).toMatch(/The comment was not written: .* 401 .*pull-requests: write/)
    expect(failed.stderr).not.toContain('wrong-token')
  })

  it.each<[string, string[], Record<string, string>, number, RegExp]>([
    ['no pull request', ['--comment'], { GITHUB_REF: 'refs/heads/main' }, 0, /about no pull request/],
    ['no CI host', ['--comment'], { GITHUB_ACTIONS: '' }, 2, /name its page with --pull/],
    ['no token', ['--comment'], { GITHUB_TOKEN: '' }, 2, /needs a token of 127.*GITHUB_TOKEN/],
    ['what is no page', ['--comment', '--pull', 'me/app#7'], {}, 2, /is no address of a pull request/],
    ['another forge', ['--comment', '--pull', 'http://127.0.0.1:1/me/app/pull/7'], {}, 2, /needs a token/],
    ['no comment', ['--compare', 'main'], {}, 2, /--compare needs --comment/],
    ['no folder', ['--comment', '--compare', 'nowhere'], {}, 2, /--compare nowhere: /],
  ])('with %s', async (_, args, env, code, said) => {
    const [cwd, forge] = [await prepare(), await startForge()]
    const ended = await runCli(['upload', ...args, 'shots/new.png'], { cwd, env: actions(forge, env) })
    expect(ended.code, ended.stderr).toBe(code)
    expect(ended.stderr).toMatch(said)
    expect(ended.stdout === '').toBe(code !== 0)
    expect(forge.asked).toEqual([])
  })
})

describe('comment', () => {
  it('the built program takes what upload has printed, from a file or standard input, and pictures of earlier', async () => {
    const [cwd, forge] = [await makeDirectory(), await startForge()]
    const after = [
      result('shots/a.png', 'a2'),
      result('shots/b/same.png', 'same'),
      { name: 'c.png', error: 'no' },
    ]
    const before = [result('main/a.png', 'a1'), result('main/b/same.png', 'same'), result('main/c.png', 'c')]
    await writeFile(join(cwd, 'after.json'), JSON.stringify(after))
    await writeFile(join(cwd, 'before.ndjson'), before.map(one => JSON.stringify(one)).join('\n'))
    const args = ['comment', '--before', 'before.ndjson', '--pull', pageOf(forge, 'github')]
    const env = { UPLOAD_COMMENT_TOKEN: TOKEN }
    expect(await runBuilt([...args, 'after.json'], { cwd, env })).toMatchObject({ code: 0, stdout: '' })
    const body = forge.comments[0]?.body ?? ''
    expect(body).toContain('**1 changed, 1 the same, 1 failed**')
    expect(body).toMatch(/\/a1\.png.*30 × 20 \|.*\/a2\.png/)
    const input = JSON.stringify(after)
    const said = await runBuilt(args, { cwd, env, input })
    expect(said.stderr).toContain('The comment says so already.')
    const shown = await runCli(['comment', '--dry-run', '--before', 'before.ndjson', 'after.json'], { cwd })
    expect(body.endsWith(shown.stdout)).toBe(true)
  })

  it.each([
    ['nothing', ''],
    ['what is no JSON', '{'],
    ['another JSON', '{"a":1}'],
    ['links that are none', JSON.stringify([{ name: 'a', url: 'javascript:alert(1)' }])],
  ])('refuses %s', async (_, input) => {
    const cwd = await makeDirectory()
    const { code, stderr } = await runCli(['comment', '--dry-run'], { cwd, input })
    expect(code).toBe(1)
    expect(stderr).toContain('Standard input is not what "upload-server upload --format json" prints.')
  })

  it('attack: names and failures of a pull request stay text, however many there are', async () => {
    const cwd = await makeDirectory()
    const name = '<img src=x onerror=alert(1)> | `x` @all #1 ]( http://evil/ --> \n## h.png'
    const results = Array.from({ length: 3000 }, (_, index) => ({
      ...result(`${index}${name}`, `s${index}`),
    }))
    const input = JSON.stringify([{ name, error: name }, ...results])
    const before = join(cwd, 'before.json')
    await writeFile(before, JSON.stringify(results.map(one => ({ ...one, sha256: 'old' }))))
    for (const more of [[], ['--before', before]]) {
      const { code, stdout } = await runCli(['comment', '--dry-run', ...more], { cwd, input })
      expect(code).toBe(0)
      expect(stdout.length).toBeLessThan(65_000)
      expect(/more (?:than fits|changed, which do not fit)/.test(stdout)).toBe(true)
      expect(/[^\\]<img src=x|@all|\n## h|[^\\]`x/.exec(stdout)).toBeNull()
    }
  })
})
