import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, type TestContext } from 'vitest'
import { parse } from 'yaml'
import { runAction, runComponent } from '../helpers/ci-hosts.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { needs } from '../helpers/needs.ts'
import { makePicture } from '../helpers/picture.ts'
import { runProgram } from '../helpers/run-program.ts'
import { BIN, environmentIn } from '../helpers/spawn-server.ts'
import { shareApp } from '../helpers/start-app.ts'
import { ACTIONS_JOB, pageOf, startCommentForge, TOKEN } from '../servers/comment-forge.ts'
import { startTokenSite } from '../servers/token-site.ts'
import { serve } from '../uploader/sources/servers.ts'

const NAMES = ['first.png', 'with space.png', `it's "b" $(x) \`y\` ;&.png`, '图片 é.png', '-dash.png']
const KEY = 'key-of-the-server-0123456789'

/** A job's folder with pictures, the program on its path, and the environment of a job at a pull request. */
async function prepare(context: TestContext) {
  needs(context, 'bash', 'bash')
  const cwd = await makeDirectory()
  for (const folder of ['shots', 'main', 'bin']) await mkdir(join(cwd, folder))
  for (const name of NAMES) await writeFile(join(cwd, 'shots', name), makePicture())
  await writeFile(join(cwd, 'main/first.png'), makePicture(1000, [0, 0, 255]))
  const program = join(cwd, 'bin/upload-server')
  await writeFile(program, `#!/bin/sh\nexec '${process.execPath}' '${BIN}' "$@"\n`)
  await chmod(program, 0o755)
  const PATH = `${join(cwd, 'bin')}:${join(process.execPath, '..')}:${process.env['PATH']}`
  return { cwd, env: environmentIn(cwd, { PATH }) }
}

const app = shareApp({ config: { server: { key: KEY }, auth: { loopbackExempt: false } } })

/** What may be there in the place of a server, and what has to be said of it. */
const BROKEN: [string, RequestListener | undefined, RegExp][] = [
  ['is down', undefined, /can't be reached|nothing listens/],
  [
    'refuses',
    (_, response) =>
      response
        .writeHead(401, { 'Content-Type': 'application/json' })
        .end('{"success":false,"message":"wrong key"}'),
    /wrong key/,
  ],
  [
    'is another',
    (_, response) => response.end('<h1>Log in</h1>'),
    /Log in|not the response of an upload server/i,
  ],
]

const countStored = (url: string) => expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/files\//)

describe('action.yml', () => {
  it('uploads whatever the files are called, and gives links to the next steps, the summary and the pull request', async context => {
    const { cwd, env } = await prepare(context)
    const [server, forge] = [app().url, await startCommentForge('github')]
    onTestFinished(() => forge.close())
    const job = { ...env, ...ACTIONS_JOB, GITHUB_API_URL: forge.api, GITHUB_RUN_ID: '1' }
    await writeFile(join(cwd, 'shots/notes.txt'), 'not an image')
    const names = ['shots/with space.png', '', `shots/${NAMES[2]}`, 'shots/图*.png', 'shots', '!shots/*.txt']
    const inputs = { files: names.join('\r\n'), server, key: KEY, comment: 'true', compare: 'main' }
    const { exitCode, outputs, printed, path } = await runAction('action.yml', inputs, {
      cwd,
      env: job,
      token: TOKEN,
    })
    expect(exitCode, printed).toBe(0)
    const links = outputs['urls']?.split('\n') ?? []
    expect(links).toHaveLength(NAMES.length)
    links.forEach(countStored)
    for (const link of links) expect((await fetch(link)).status).toBe(200)
    expect(outputs).toMatchObject({ url: links[0], stored: '5', failed: '0' })
    expect(JSON.parse(outputs['json'] ?? '')[0]).toMatchObject({
      name: 'shots/with space.png',
      url: links[0],
    })
    expect(await readFile(outputs['results'] ?? '', 'utf8')).toContain('shots/with space.png')
    expect(await readFile(join(cwd, 'summary.md'), 'utf8')).toContain('**1 changed · 4 new**')
    expect(forge.comments[0]?.body).toContain('1 changed · 4 new')
    expect(printed).not.toContain(KEY)
    const again = await runProgram('bash', ['-c', 'upload-server --version'], {
      env: { PATH: `${path}:${join(process.execPath, '..')}:/usr/bin:/bin` },
    })
    expect(again.stdout).toMatch(/^\d/)
  })

  it('fails for images that have changed, but not if few of their pixels have', async context => {
    const { cwd, env } = await prepare(context)
    const forge = await startCommentForge('github')
    onTestFinished(() => forge.close())
    const pr = pageOf(forge, 'github')
    const inputs = { files: 'shots/first.png', server: app().url, key: KEY, pr, comment: 'true' }
    const at = { cwd, env: { ...env, GITHUB_ACTIONS: 'true', GITHUB_API_URL: forge.api }, token: TOKEN }
    for (const [more, code] of [
      [{ 'fail-on': 'changed' }, 1],
      [{ 'fail-on': 'changed', threshold: '100' }, 0],
      [{ destination: 'none', expires: '1h' }, 1],
    ] as const) {
      const { exitCode, printed } = await runAction('action.yml', { ...inputs, compare: 'main', ...more }, at)
      expect(exitCode, printed).toBe(code)
    }
    expect(forge.comments).toHaveLength(1)
  })

  it('writes a comment for each job of a matrix, and for each of its steps', async context => {
    const { cwd, env } = await prepare(context)
    const [server, forge] = [app().url, await startCommentForge('github')]
    onTestFinished(() => forge.close())
    const job = { ...env, ...ACTIONS_JOB, GITHUB_API_URL: forge.api }
    const inputs = { files: 'shots/first.png', server, key: KEY, comment: 'true' }
    for (const [matrix, GITHUB_ACTION] of [
      [null, '__self'],
      [null, '__self_2'],
      [{ os: 'linux' }, '__self'],
      [{ os: 'macos' }, '__self'],
      [{ os: 'macos' }, '__self'],
    ] as const) {
      const at = { cwd, env: { ...job, GITHUB_ACTION }, token: TOKEN, matrix }
      const { exitCode, printed } = await runAction('action.yml', inputs, at)
      expect(exitCode, printed).toBe(0)
    }
    expect(forge.comments).toHaveLength(4)
  })

  it('without a key sends a token of the job, which is hidden', async context => {
    const { cwd, env } = await prepare(context)
    const site = await startTokenSite()
    onTestFinished(() => site.close())
    const inputs = { files: 'shots', server: site.url }
    const { exitCode, printed, outputs } = await runAction('action.yml', inputs, {
      cwd,
      env: { ...env, ...site.job },
    })
    expect(exitCode, printed).toBe(0)
    expect(outputs).toMatchObject({ stored: '5', failed: '0' })
    expect(site.issued).toHaveLength(1)
    expect(printed.split('\n').filter(line => /eyJ/.test(line))).toEqual([`::add-mask::${site.issued[0]}`])
  })

  it.for(BROKEN)('fails and says why when the server %s', async ([, handle, said], context) => {
    const { cwd, env } = await prepare(context)
    const server = handle ? (await serve(handle)).origin : 'http://127.0.0.1:1'
    const inputs = { files: 'shots/first.png', server, timeout: '0' }
    const { exitCode, printed, outputs } = await runAction('action.yml', inputs, { cwd, env })
    expect(exitCode).toBeGreaterThan(0)
    expect(printed).toMatch(said)
    expect(outputs).toMatchObject({ stored: '0', failed: '1', url: '' })
  })

  it('runs no code of the repository that is checked out, and says what is missing, when no server is named', async context => {
    const { cwd, env } = await prepare(context)
    await writeFile(join(cwd, 'upload-server.json'), JSON.stringify({ plugins: ['./evil.mjs'] }))
    await writeFile(join(cwd, 'evil.mjs'), `process.stderr.write(process.env.GITHUB_TOKEN)`)
    await writeFile(
      join(cwd, '.env'),
      'UPLOAD_SERVER__PLUGINS=./evil.mjs\nUPLOAD_SERVER_CONFIG=upload-server.json',
    )
    for (const server of ['', app().url]) {
      const job = { cwd, env, token: TOKEN }
      const { exitCode, printed } = await runAction('action.yml', { files: 'shots', key: KEY, server }, job)
      expect({ exitCode, printed }).toEqual({
        exitCode: server ? 0 : 2,
        printed: expect.stringContaining(server ? '/files/' : '::error::"server" is empty'),
      })
      expect(printed).not.toContain(TOKEN)
    }
  })

  it('does not fail when it may', async context => {
    const { cwd, env } = await prepare(context)
    const inputs = {
      files: 'shots/first.png',
      server: 'http://127.0.0.1:1',
      timeout: '0',
      'soft-fail': 'true',
    }
    expect((await runAction('action.yml', inputs, { cwd, env })).exitCode).toBe(0)
  })

  it.for([
    ['one that is missing', 'shots/first.png\nnope.png', 3],
    ['a folder without any', 'empty', 1],
    ['nothing', '\n', 2],
  ] as const)('fails for %s', async ([, files, code], context) => {
    const { cwd, env } = await prepare(context)
    await mkdir(join(cwd, 'empty'))
    const inputs = { files, server: app().url, key: KEY }
    expect((await runAction('action.yml', inputs, { cwd, env })).exitCode).toBe(code)
  })

  it('attack: other steps of the job change the program that is kept for all later jobs', async context => {
    const { cwd, env } = await prepare(context)
    // It is there already, so this job has not built it.
    const { used } = await runAction(
      'action.yml',
      { files: 'shots', server: app().url, key: KEY },
      { cwd, env },
    )
    expect(used).toEqual([expect.stringMatching(/^actions\/cache\/restore@/)])
    const { runs } = parse(await readFile('action.yml', 'utf8'))
    const steps: string[] = runs.steps.map(({ name }: { name: string }) => name)
    expect(steps.indexOf('Save the program')).toBe(steps.indexOf('Build upload-server') + 1)
  })

  it('builds with NODE_ENV=production, where npm would leave out the compiler', async () => {
    expect(await readFile('action.yml', 'utf8')).toContain('npm ci --silent --include=dev')
  })

  it('tells every option of the command that it takes from its inputs', async () => {
    const { inputs, runs } = parse(await readFile('action.yml', 'utf8'))
    const text = JSON.stringify(runs)
    for (const name of Object.keys(inputs)) expect(text).toContain(`inputs.${name} `)
  })
})

describe('the component of GitLab', () => {
  const image = 'registry.example.com/upload-server@sha256:0'

  it('uploads whatever the files are called, and gives links to later jobs and the merge request', async context => {
    const { cwd, env } = await prepare(context)
    const [server, forge] = [app().url, await startCommentForge('gitlab')]
    onTestFinished(() => forge.close())
    const job = {
      ...env,
      ...{ UPLOAD_SERVER_KEY: KEY, GITLAB_TOKEN: TOKEN, CI_PIPELINE_IID: '1', CI_JOB_ID: '1' },
      ...{ CI_API_V4_URL: forge.api, CI_MERGE_REQUEST_PROJECT_ID: 'group/me/app', CI_MERGE_REQUEST_IID: '7' },
    }
    const files = ['shots/with space.png', `shots/${NAMES[2]}`, 'shots'].join('\r\n')
    const inputs = { files, image, server, comment: true, compare: 'main', needs: ['e2e'] }
    const { exitCode, printed, dotenv, junit, ...made } = await runComponent('templates/upload.yml', inputs, {
      cwd,
      env: job,
    })
    expect(exitCode, printed).toBe(0)
    expect(made).toMatchObject({
      name: 'upload',
      job: { stage: 'deploy', needs: ['e2e'], image: { name: image } },
    })
    expect(dotenv).toMatchObject({ UPLOAD_STORED: '5', UPLOAD_FAILED: '0' })
    countStored(dotenv['UPLOAD_URL'] ?? '')
    expect(junit).toContain('<testsuites tests="5" failures="0"')
    expect(forge.comments[0]?.body).toContain('1 changed · 4 new')
    expect(printed).not.toContain(KEY)
  })

  it('asks for a token for its server, and sends it', async context => {
    const { cwd, env } = await prepare(context)
    const site = await startTokenSite()
    onTestFinished(() => site.close())
    const inputs = { files: 'shots', image, server: site.url }
    const job = { ...env, GITLAB_CI: 'true', UPLOAD_SERVER_TOKEN: site.issue(site.url) }
    const made = await runComponent('templates/upload.yml', inputs, { cwd, env: job })
    expect(made.exitCode, made.printed).toBe(0)
    expect(made.job).toMatchObject({ id_tokens: { UPLOAD_SERVER_TOKEN: { aud: site.url } } })
    expect(made.dotenv).toMatchObject({ UPLOAD_STORED: '5' })
    expect(made.printed).not.toContain('eyJ')
  })

  it.for(BROKEN)('fails and says why when the server %s', async ([, handle, said], context) => {
    const { cwd, env } = await prepare(context)
    const server = handle ? (await serve(handle)).origin : 'http://127.0.0.1:1'
    const inputs = { files: 'shots/first.png', image, server, timeout: '0' }
    const { exitCode, printed, dotenv } = await runComponent('templates/upload.yml', inputs, { cwd, env })
    expect(exitCode).toBeGreaterThan(0)
    expect(printed).toMatch(said)
    expect(dotenv).toMatchObject({ UPLOAD_STORED: '0', UPLOAD_FAILED: '1' })
  })

  it('fails when one of two is missing', async context => {
    const { cwd, env } = await prepare(context)
    await rm(join(cwd, 'shots/first.png'))
    const inputs = { files: 'shots/first.png\nshots/-dash.png', image, server: app().url }
    const job = { ...env, UPLOAD_SERVER_KEY: KEY }
    expect((await runComponent('templates/upload.yml', inputs, { cwd, env: job })).exitCode).toBe(3)
  })
})
