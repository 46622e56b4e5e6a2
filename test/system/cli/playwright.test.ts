import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { makeDirectory } from '../../helpers/directory.ts'
import { findFreePorts } from '../../helpers/free-port.ts'
import { needs } from '../../helpers/needs.ts'
import { makePicture } from '../../helpers/picture.ts'
import { runProgram } from '../../helpers/run-program.ts'
import { spawnServer } from '../../helpers/spawn-server.ts'
import { ACTIONS_JOB, startCommentForge, TOKEN } from '../../servers/comment-forge.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** Runs Playwright's own runner over a project that has both packages installed. */
async function runTests(
  tests: string,
  options: object,
  files: Record<string, string | Buffer> = {},
  retries = 1,
  env: Record<string, string> = {},
  args: readonly string[] = [],
) {
  const cwd = await makeDirectory()
  await mkdir(join(cwd, 'node_modules'))
  await symlink(join(ROOT, 'node_modules', '@playwright'), join(cwd, 'node_modules', '@playwright'))
  await symlink(ROOT, join(cwd, 'node_modules', 'upload-server'))
  const reporters = [['line'], ['upload-server/playwright', { summary: join(cwd, 'summary.md'), ...options }]]
  const all = {
    'package.json': '{ "type": "module" }',
    'playwright.config.js': `export default {
      retries: ${retries}, workers: 1,
      use: { screenshot: 'only-on-failure', launchOptions: { executablePath: '/usr/bin/chromium-headless-shell', args: ['--no-sandbox'] } },
      reporter: ${JSON.stringify(reporters)},
    }`,
    'login.spec.js': `import { test, expect } from '@playwright/test'\n${tests}`,
    ...files,
  }
  for (const [name, content] of Object.entries(all)) {
    await mkdir(join(cwd, name, '..'), { recursive: true })
    await writeFile(join(cwd, name), content)
  }
  const program = join(ROOT, 'node_modules', '@playwright', 'test', 'cli.js')
  const { exitCode, stdout } = await runProgram(process.execPath, [program, 'test', ...args], {
    cwd,
    env,
  })
  const summary = await readFile(join(cwd, 'summary.md'), 'utf8').catch(() => '')
  return { cwd, exitCode, stdout, summary, links: stdout.match(/https?:\/\/\S+/g) ?? [] }
}

async function startServer() {
  const directory = await makeDirectory()
  const providers = { local: { Default: { directory: 'files', serve: true } } }
  const config = { server: { port: 0, key: 'of-the-job' }, auth: { loopbackExempt: false }, providers }
  await writeFile(join(directory, 'upload-server.json'), JSON.stringify(config))
  return (await spawnServer([], { directory })).url
}

const fetchBytes = async (url: string) => Buffer.from(await (await fetch(url)).arrayBuffer())

it('uploads what failed tests have attached, each attempt, and nothing of others', {
  timeout: 60_000,
}, async () => {
  const server = await startServer()
  const picture = makePicture()
  const { exitCode, stdout, summary, links } = await runTests(
    `
test('says <b>no</b> | to a *wrong* password', async ({}, info) => {
  await info.attach('the page', { path: 'page.png' })
  await info.attach('of memory', { body: 'GIF89a' + info.retry, contentType: 'image/gif' })
  await info.attach('cookies', { body: 'secret', contentType: 'text/plain' })
  expect(1).toBe(2)
})
test('passes', async ({}, info) => { await info.attach('ok', { body: 'GIF89a', contentType: 'image/gif' }) })
test('fails as it should', async ({}, info) => {
  test.fail()
  await info.attach('ok', { body: 'GIF89a', contentType: 'image/gif' })
  expect(1).toBe(2)
})`,
    { server, key: 'of-the-job' },
    { 'page.png': picture },
  )
  expect(exitCode).toBe(1)
  expect(stdout).toContain('Attachments: 4 of 4 uploaded')
  expect(stdout).toContain('login.spec.js › says <b>no</b> | to a *wrong* password (retry 1)\n')
  expect(links).toHaveLength(4)
  const stored = await Promise.all(links.map(fetchBytes))
  expect(stored.map(String)).toEqual([picture.toString(), 'GIF89a0', picture.toString(), 'GIF89a1'])
  expect(new URL(links[0] ?? '').pathname).toMatch(/says-b-no-b-to-a-wrong-password-the-page-\w+\.png$/)
  expect(summary).toContain(
    '&#x3c;/b&#x3e; &#x7c; to a &#x2a;wrong&#x2a; password &#x28;retry 1&#x29;/of memory</code>',
  )
  expect(summary).toContain(`<a href="${links[0]}"><img src="${links[0]}"`)
})

it('uploads the picture that a browser took of a failed test', async context => {
  needs(context, 'chromium-headless-shell', 'chromium-headless-shell')
  const server = await startServer()
  const { stdout, links } = await runTests(
    `test('shows', async ({ page }) => { await page.setContent('<h1>hello</h1>'); expect(1).toBe(2) })`,
    { server, key: 'of-the-job' },
    {},
    0,
  )
  expect(stdout).toContain('Attachments: 1 of 1 uploaded')
  const [first] = await Promise.all(links.map(fetchBytes))
  expect(first?.subarray(0, 4).toString('latin1')).toBe('\x89PNG')
})

it('says why nothing was uploaded, and fails the run where that is wanted', async () => {
  const server = `http://127.0.0.1:${await findFreePorts()}`
  const test = `test('x', async ({}, info) => { await info.attach('a', { body: 'GIF89a', contentType: 'image/gif' }) })`
  const { exitCode, stdout, summary } = await runTests(test, { server, tests: 'all', required: true })
  expect(stdout).toContain('Attachments: 0 of 1 uploaded')
  expect(stdout).toContain('it refuses connections')
  expect(summary).toMatch(/^- ❌ <code>.*\/a<\/code>: /m)
  expect(exitCode).toBe(1)
})

it('uploads without a server by the configuration in "config"', async () => {
  const directory = await makeDirectory()
  const config = join(directory, 'here.json')
  const providers = {
    local: { Default: { directory: join(directory, 'files'), urlPrefix: 'https://img.example' } },
  }
  await writeFile(config, JSON.stringify({ providers }))
  const test = `test('x', async ({}, info) => {
    for (let i = 0; i < 90; i++) await info.attach('a' + i, { body: 'GIF89a' + i, contentType: 'image/gif' })
  })`
  const { stdout, links } = await runTests(test, { config, tests: 'all', path: 'shots' }, {}, 0)
  expect(stdout).toContain('Attachments: 90 of 90 uploaded')
  expect(new Set(links).size).toBe(90)
  const stored = await readdir(join(directory, 'files'), { recursive: true })
  expect(stored.filter(name => name.endsWith('.gif'))).toHaveLength(90)
})

it('shows a screenshot that is not the expected one in a comment and a report, and opens traces by a link', async context => {
  needs(context, 'chromium-headless-shell', 'chromium-headless-shell')
  const [server, forge] = [await startServer(), await startCommentForge('github')]
  onTestFinished(() => forge.close())
  const env = {
    ...{
      GITHUB_ACTIONS: 'true',
      GITHUB_API_URL: forge.api,
      GITHUB_REPOSITORY: 'me/app',
      GITHUB_TOKEN: TOKEN,
    },
    ...{ GITHUB_REF: 'refs/pull/7/merge', GITHUB_RUN_NUMBER: '1', GITHUB_SHA: 'ab'.repeat(20) },
  }
  const options = { server, key: 'of-the-job', comment: true, report: 'report.html' }
  const test = `test('signs in', async ({ page }, info) => {
    await info.attach('trace', { body: 'PK', contentType: 'application/zip' })
    await page.setContent('<h1>hello</h1>')
    await expect(page).toHaveScreenshot('page.png', { timeout: 2000 })
  })`
  const files = { 'login.spec.js-snapshots/page-linux.png': makePicture() }
  const types = ['image/', 'application/zip']
  const { cwd, stdout, summary } = await runTests(test, { ...options, types }, files, 0, env)
  const body = forge.comments[0]?.body ?? ''
  expect(body, stdout).toContain('**1 changed**')
  expect(body).toContain('<code>login.spec.js &#x203a; signs in/page.png</code>: 1 × 1 → 1280 × 720')
  expect(body.match(/<td><a href="[^"]+signs-in-page-(?:expected|actual|diff)-/g)).toHaveLength(3)
  expect(body).toMatch(/src="[^"]+\/small-after-page-\w+\.webp"/)
  const viewer = /https:\/\/trace\.playwright\.dev\/\?trace=http%3A%2F%2F127\.0\.0\.1\S+?\.zip/
  for (const text of [body, stdout, summary]) expect(text).toMatch(viewer)
  expect(await readFile(join(cwd, 'report.html'), 'utf8')).toContain('<span class="state">Changed</span>')
  await runTests(`test('passes', () => {})`, options, {}, 0, { ...env, GITHUB_RUN_NUMBER: '2' })
  expect(forge.comments.map(one => one.body.split('\n')[1])).toEqual(['**Pictures**: nothing to compare'])
})

it('shards that run at the same time write one comment', async () => {
  const [server, forge] = [await startServer(), await startCommentForge('github')]
  onTestFinished(() => forge.close())
  const env = {
    ...{ ...ACTIONS_JOB, GITHUB_API_URL: forge.api, GITHUB_TOKEN: TOKEN },
    ...{ GITHUB_SERVER_URL: 'https://github.com', GITHUB_RUN_ID: '9' },
  }
  const testOf = (name: string) =>
    `test('${name}', async ({}, info) => { await info.attach('shot', { path: 'page.png' }) })`
  const options = { server, key: 'of-the-job', comment: true, tests: 'all' }
  const more = `import { test } from '@playwright/test'\n${testOf('menu')}`
  const files = { 'page.png': makePicture(), 'menu.spec.js': more }
  const shards = [1, 2].map(n => runTests(testOf('login'), options, files, 0, env, [`--shard=${n}/2`]))
  for (const { stdout } of await Promise.all(shards)) expect(stdout).toContain('Attachments: 1 of 1 uploaded')
  expect(forge.comments.map(({ body }) => body.match(/\*\*\d of \d stored/)?.[0])).toEqual([
    '**2 of 2 stored',
  ])
})
