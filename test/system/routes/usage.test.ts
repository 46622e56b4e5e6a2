import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, type TestContext } from 'vitest'
import { ask } from '../../helpers/ask.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { missing, needs } from '../../helpers/needs.ts'
import { makePicture } from '../../helpers/picture.ts'
import { runProgram } from '../../helpers/run-program.ts'
import { startApp, type TestApp } from '../../helpers/start-app.ts'

const KEY = 'k3y-of-the-server'

const get = (app: TestApp, headers = {}, target = '/') => ask(app.url, 'GET', target, { headers })

describe('the example for', () => {
  const PROGRAMS: Record<string, string[]> = {
    curl: ['curl'],
    python: ['python3'],
    github: ['curl'],
    gitlab: ['curl'],
  }

  /** A folder with pictures, a server, and what the page tells to run there. */
  async function prepare(context: TestContext, id: string, config: Record<string, unknown>) {
    for (const program of PROGRAMS[id] ?? []) needs(context, program, program)
    const app = await startApp({ config })
    const directory = await makeDirectory()
    await mkdir(join(directory, 'screenshots'))
    await writeFile(join(directory, 'picture.png'), makePicture())
    for (const name of ['one.png', 'two.png'])
      await copyFile(join(directory, 'picture.png'), join(directory, 'screenshots', name))
    const { body } = await get(app)
    const block = new RegExp(`id="${id}">.*?<pre><code>(.*?)</code></pre>`, 's').exec(body)?.[1] ?? ''
    const code = block
      .replace(/&lt;/g, '<')
      .replace(/&gt;/g, '>')
      .replace(/&quot;/g, '"')
      .replace(/&#39;/g, "'")
      .replace(/&amp;/g, '&')
    const run = (command: string, ...args: string[]) => {
      const settings = { UPLOAD_KEY: KEY, GITHUB_STEP_SUMMARY: join(directory, 'summary.md') }
      const words = Object.entries(settings).map(([name, value]) => `${name}=${value}`)
      return runProgram('env', [...words, command, ...args], { cwd: directory })
    }
    return { app, code, directory, run }
  }

  const link = (app: TestApp) => new RegExp(`^${app.url}/files/Default/\\S+\\.png\\n$`)
  const closed = { server: { key: KEY }, auth: { loopbackExempt: false } }

  it.for([
    ['without a key', {}],
    ['with a key', closed],
  ] as const)('curl works %s', async ([, config], context) => {
    const { app, code, run } = await prepare(context, 'curl', config)
    const { stdout } = await run('sh', '-c', code)
    expect(JSON.parse(stdout)).toMatchObject({ success: true, result: [expect.stringContaining(app.url)] })
  })

  it.for([
    ['without a key', {}],
    ['with a key', closed],
  ] as const)('fetch works %s', async ([, config], context) => {
    const { app, code, directory, run } = await prepare(context, 'fetch', config)
    await writeFile(join(directory, 'example.mjs'), code)
    expect((await run(process.execPath, '--no-warnings', 'example.mjs')).stdout).toMatch(link(app))
  })

  it.for([
    ['without a key', {}],
    ['with a key', closed],
  ] as const)('Python works %s', async ([, config], context) => {
    const { app, code, run } = await prepare(context, 'python', config)
    const { exitCode } = await run('python3', '-c', 'import requests')
    if (exitCode !== 0) missing(context, 'needs "requests": apt-get install python3-requests')
    expect(await run('python3', '-c', code)).toMatchObject({ stdout: expect.stringMatching(link(app)) })
  })

  it('GitHub Actions puts pictures into the summary, and fails with the server’s words', async context => {
    const { app, code, directory, run } = await prepare(context, 'github', closed)
    const script = code.slice(code.indexOf('run: |') + 6).replace(/^ {4}/gm, '')
    expect(await run('bash', '-e', '-c', script)).toMatchObject({ exitCode: 0, stderr: '' })
    const summary = await readFile(join(directory, 'summary.md'), 'utf8')
    expect(summary).toMatch(new RegExp(`^(?:!\\[\\]\\(${app.url}/files/\\S+\\.png\\)\\n){2}$`))
    const failed = await run('bash', '-e', '-c', `UPLOAD_KEY=wrong\n${script}`)
    expect(failed.exitCode).not.toBe(0)
    expect(failed.stderr).toContain('Missing or invalid upload key. ')
    await app.server.stop()
    const down = await run('bash', '-e', '-c', script.replace('--retry 3', '--retry 0'))
    expect(down).toMatchObject({ exitCode: 1, stdout: '', stderr: expect.stringMatching(/connect/i) })
    expect(await readFile(join(directory, 'summary.md'), 'utf8')).toBe(summary)
  })

  it('GitLab CI prints one link a line, and fails with the server’s words', async context => {
    const { app, code, run } = await prepare(context, 'gitlab', closed)
    const script = code.slice(code.indexOf('- |') + 3).replace(/^ {6}/gm, '')
    const done = await run('sh', '-c', script)
    expect(done.exitCode).toBe(0)
    expect(done.stdout.trim().split('\n')).toEqual([
      expect.stringContaining(app.url),
      expect.stringContaining(app.url),
    ])
    const failed = await run('sh', '-c', `UPLOAD_KEY=wrong\n${script}`)
    expect(failed.exitCode).not.toBe(0)
    expect(failed.stderr).toContain('Missing or invalid upload key. ')
    await app.server.stop()
    const down = await run('sh', '-c', script.replace('--retry 3', '--retry 0'))
    expect(down).toMatchObject({ exitCode: 1, stdout: '', stderr: expect.stringMatching(/connect/i) })
  })
})
