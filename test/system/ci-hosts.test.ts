import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, type TestContext } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { makeDirectory } from '../helpers/directory.ts'
import { needs } from '../helpers/needs.ts'
import { makePicture } from '../helpers/picture.ts'
import { runProgram } from '../helpers/run-program.ts'
import { BIN, environmentIn } from '../helpers/spawn-server.ts'
import { shareApp } from '../helpers/start-app.ts'
import { ACTIONS_JOB, pageOf, startCommentForge, TOKEN } from '../servers/comment-forge.ts'
import { startTokenSite } from '../servers/token-site.ts'

// The scripts of action.yml and templates/upload.yml, with the inputs where the CI host puts them.

const NAMES = ['first.png', 'with space.png', `it's "b" $(x) \`y\` ;&.png`, '图片 é.png', '-dash.png']
const KEY = 'key-of-the-server-0123456789'
const DOWN = { server: 'http://127.0.0.1:1', timeout: '0' }

type Env = Record<string, string>
type Inputs = Record<string, unknown>
type Place = Awaited<ReturnType<typeof prepare>>

const app = shareApp({ config: { server: { key: KEY }, auth: { loopbackExempt: false } } })

/** The inputs of a step that uploads one file. */
const SENT = () => ({ files: 'shots/first.png', server: app().url, key: KEY })

/** A job's folder with pictures, and the environment of a job with the program on its path. */
async function prepare(context: TestContext) {
  needs(context, 'bash', 'bash')
  const cwd = await makeDirectory()
  for (const folder of ['shots', 'main', 'bin', 'empty']) await mkdir(join(cwd, folder))
  for (const name of NAMES) await writeFile(join(cwd, 'shots', name), makePicture())
  await writeFile(join(cwd, 'main/first.png'), makePicture(1000, [0, 0, 255]))
  const program = join(cwd, 'bin/upload-server')
  await writeFile(program, `#!/bin/sh\nexec '${process.execPath}' '${BIN}' "$@"\n`)
  await chmod(program, 0o755)
  const PATH = `${join(cwd, 'bin')}:${join(process.execPath, '..')}:${process.env['PATH']}`
  return { cwd, env: environmentIn(cwd, { PATH }) }
}

/** Closes a server at the end of the test. */
async function closed<T extends { close(): Promise<void> }>(starting: Promise<T>): Promise<T> {
  const server = await starting
  onTestFinished(() => server.close())
  return server
}

/** Runs a script as a CI host does. */
const runScript = (script: string, cwd: string, env: Env) =>
  runProgram('bash', ['--noprofile', '--norc', '-eo', 'pipefail', '-c', script], { cwd, env })

/** The text, where it is only the name of an input: its value. */
const fill = (text: string, name: RegExp, inputOf: (name: string) => unknown) =>
  text.replace(name, (_, name: string) => String(inputOf(name)))

interface Step {
  readonly id?: string
  readonly name: string
  readonly if?: string
  readonly run?: string
  readonly env?: Env
}

const readAction = async () => parse(await readFile('action.yml', 'utf8'))

/** Runs the step of the action that uploads. @param matrix of the job, `null` without one */
async function runAction({ cwd, env }: Place, inputs: Env, matrix: object | null = null) {
  const action = await readAction()
  const step: Step = action.runs.steps.find(({ id }: Step) => id === 'upload')
  const inputOf = (name: string) => {
    expect(action.inputs).toHaveProperty([name])
    return inputs[name] ?? (name === 'token' ? TOKEN : (action.inputs[name].default ?? ''))
  }
  const own = Object.entries(step.env ?? {}).map(([name, text]) => [
    name,
    text === '${{ toJSON(matrix) }}'
      ? JSON.stringify(matrix, undefined, 2)
      : fill(text, /^\$\{\{ inputs\.([\w-]+) \}\}$/, inputOf),
  ])
  const [output, summary] = [join(cwd, 'output'), join(cwd, 'summary.md')]
  await writeFile(output, '')
  const { exitCode, stdout, stderr } = await runScript(step.run ?? '', cwd, {
    ...{ ...env, GITHUB_ACTION_PATH: process.cwd(), GITHUB_OUTPUT: output, GITHUB_STEP_SUMMARY: summary },
    ...Object.fromEntries(own),
  })
  const written = (await readFile(output, 'utf8')).matchAll(/^([\w-]+)<<(.+)\n([\s\S]*?)\n?\2$/gm)
  const outputs: Env = Object.fromEntries(
    [...written].map(([, name = '', , value = '']) => [name, value.trim()]),
  )
  if (exitCode !== 2)
    expect(Object.keys(outputs)).toEqual(expect.arrayContaining(Object.keys(action.outputs)))
  return { exitCode, printed: stdout + stderr, outputs }
}

describe('action.yml', () => {
  it('uploads whatever the files are called, and gives links to the next steps, the summary and the pull request', async context => {
    const { cwd, env } = await prepare(context)
    const forge = await closed(startCommentForge('github'))
    const job = { ...env, ...ACTIONS_JOB, GITHUB_API_URL: forge.api, GITHUB_RUN_ID: '1', RUNNER_TEMP: cwd }
    await writeFile(join(cwd, 'shots/notes.txt'), 'not an image')
    const names = ['shots/with space.png', '', `shots/${NAMES[2]}`, 'shots/图*.png', 'shots', '!shots/*.txt']
    const inputs = { ...SENT(), files: names.join('\r\n'), comment: 'true', compare: 'main' }
    const { exitCode, printed, outputs } = await runAction({ cwd, env: job }, inputs)
    expect(exitCode, printed).toBe(0)
    const links = outputs['urls']?.split('\n') ?? []
    expect(links).toHaveLength(NAMES.length)
    for (const link of links) expect((await fetch(link)).status).toBe(200)
    expect(outputs).toMatchObject({ url: links[0], stored: '5', failed: '0' })
    expect(JSON.parse(outputs['json'] ?? '')[0]).toMatchObject({ name: names[0], url: links[0] })
    expect(await readFile(outputs['results'] ?? '', 'utf8')).toContain('shots/with space.png')
    expect(await readFile(join(cwd, 'summary.md'), 'utf8')).toContain('**1 changed · 4 new**')
    expect(forge.comments[0]?.body).toContain('1 changed · 4 new')
    expect(printed).not.toContain(KEY)
  })

  it('fails for images that have changed, but not if few of their pixels have', async context => {
    const { cwd, env } = await prepare(context)
    const forge = await closed(startCommentForge('github'))
    const place = { cwd, env: { ...env, GITHUB_ACTIONS: 'true', GITHUB_API_URL: forge.api } }
    const pr = pageOf(forge, 'github')
    const inputs = { ...SENT(), pr, comment: 'true', compare: 'main' }
    for (const [more, code] of [
      [{ 'fail-on': 'changed' }, 1],
      [{ 'fail-on': 'changed', threshold: '100' }, 0],
      [{ destination: 'none', expires: '1h' }, 1],
    ] as const)
      expect((await runAction(place, { ...inputs, ...more })).exitCode).toBe(code)
    expect(forge.comments).toHaveLength(1)
  })

  it('writes a comment for each job of a matrix, and for each of its steps', async context => {
    const { cwd, env } = await prepare(context)
    const forge = await closed(startCommentForge('github'))
    const inputs = { ...SENT(), comment: 'true' }
    for (const [matrix, GITHUB_ACTION] of [
      [null, '__self'],
      [null, '__self_2'],
      [{ os: 'linux' }, '__self'],
      [{ os: 'macos' }, '__self'],
      [{ os: 'macos' }, '__self'],
    ] as const) {
      const job = { ...env, ...ACTIONS_JOB, GITHUB_API_URL: forge.api, GITHUB_ACTION }
      const { exitCode, printed } = await runAction({ cwd, env: job }, inputs, matrix)
      expect(exitCode, printed).toBe(0)
    }
    expect(forge.comments).toHaveLength(4)
  })

  it('without a key sends a token of the job, which is hidden', async context => {
    const { cwd, env } = await prepare(context)
    const site = await closed(startTokenSite())
    const place = { cwd, env: { ...env, ...site.job } }
    const { exitCode, printed, outputs } = await runAction(place, { files: 'shots', server: site.url })
    expect(exitCode, printed).toBe(0)
    expect(outputs).toMatchObject({ stored: '5', failed: '0' })
    expect(site.issued).toHaveLength(1)
    expect(printed.split('\n').filter(line => /eyJ/.test(line))).toEqual([`::add-mask::${site.issued[0]}`])
  })

  it('runs no code of the repository that is checked out, and says what is missing, when no server is named', async context => {
    const place = await prepare(context)
    const write = (name: string, text: string) => writeFile(join(place.cwd, name), text)
    await write('upload-server.json', JSON.stringify({ plugins: ['./evil.mjs'] }))
    await write('evil.mjs', `process.stderr.write(process.env.GITHUB_TOKEN)`)
    await write('.env', 'UPLOAD_SERVER__PLUGINS=./evil.mjs\nUPLOAD_SERVER_CONFIG=upload-server.json')
    const { exitCode, printed } = await runAction(place, SENT())
    expect(exitCode, printed).toBe(0)
    expect(printed).not.toContain(TOKEN)
  })

  it.for<[what: string, inputs: Env, code: number, said: RegExp]>([
    ['no server', { server: '' }, 2, /::error::"server" is empty/],
    ['no files', { files: '\n' }, 2, /::error::"files" is empty/],
    ['a server that is down', DOWN, 4, /can't be reached|nothing listens/],
    ['the same, with soft-fail', { ...DOWN, 'soft-fail': 'true' }, 0, /reached|listens/],
    ['one of two that is missing', { files: 'shots/first.png\nnope.png' }, 3, /nope\.png/],
  ])('ends with a code that tells what failed: %s', async ([, inputs, code, said], context) => {
    const { exitCode, printed } = await runAction(await prepare(context), { ...SENT(), ...inputs })
    expect({ exitCode, printed }).toEqual({ exitCode: code, printed: expect.stringMatching(said) })
  })

  it('attack: other steps of the job change the program that is kept for all later jobs', async () => {
    const steps: Step[] = (await readAction()).runs.steps
    const at = steps.findIndex(({ id }) => id === 'build')
    // Saved directly after it was built, and only if this job has built it.
    expect(steps[at + 1]).toMatchObject({
      name: 'Save the program',
      if: "steps.build.outputs.save == 'true'",
    })
    expect(steps[at]?.run).toMatch(
      /if \[ ! -e dist\/start\.js \]; then[\s\S]*"save=\$CACHE" >> "\$GITHUB_OUTPUT"\s*fi/,
    )
  })

  it('builds with NODE_ENV=production, where npm would leave out the compiler, and uses every input', async () => {
    const text = await readFile('action.yml', 'utf8')
    expect(text).toContain('npm ci --silent --include=dev')
    for (const name of Object.keys((await readAction()).inputs)) expect(text).toContain(`inputs.${name} `)
  })
})

/** Runs the script of the component, with its variables as GitLab sets them. */
async function runComponent({ cwd, env }: Place, inputs: Inputs) {
  const documents = parseAllDocuments(await readFile('templates/upload.yml', 'utf8'))
  const [header, body] = documents.map(one => one.toJS())
  const inputOf = (name: string) => inputs[name] ?? header.spec.inputs[name]?.default
  const [job] = Object.values(body) as [
    { variables: Record<string, string | { value: string }>; script: string[]; id_tokens: object },
  ]
  const variables = Object.entries(job.variables).map(([name, text]) => [
    name,
    fill(typeof text === 'string' ? text : text.value, /^\$\[\[ inputs\.([\w-]+) \]\]$/, inputOf),
  ])
  const { exitCode, stdout, stderr } = await runScript(job.script.join('\n'), cwd, {
    ...{ ...env, GITLAB_CI: 'true', CI_JOB_NAME: 'upload' },
    ...Object.fromEntries(variables),
  })
  const read = (name: string) => readFile(join(cwd, name), 'utf8').catch(() => '')
  const [dotenv, junit] = await Promise.all(['upload.env', 'upload.xml'].map(read))
  return { exitCode, printed: stdout + stderr, job, dotenv, junit }
}

describe('the component of GitLab', () => {
  it('uploads whatever the files are called, and gives links to later jobs and the merge request', async context => {
    const { cwd, env } = await prepare(context)
    const forge = await closed(startCommentForge('gitlab'))
    const job = {
      ...env,
      ...{ UPLOAD_SERVER_KEY: KEY, GITLAB_TOKEN: TOKEN, CI_PIPELINE_IID: '1', CI_JOB_ID: '1' },
      ...{ CI_API_V4_URL: forge.api, CI_MERGE_REQUEST_PROJECT_ID: 'group/me/app', CI_MERGE_REQUEST_IID: '7' },
    }
    const files = ['shots/with space.png', `shots/${NAMES[2]}`, 'shots'].join('\r\n')
    const inputs = { files, server: app().url, comment: true, compare: 'main' }
    const made = await runComponent({ cwd, env: job }, inputs)
    expect(made.exitCode, made.printed).toBe(0)
    expect(made.dotenv).toMatch(/^UPLOAD_STORED=5$/m)
    expect(made.dotenv).toMatch(/^UPLOAD_URL=http:\/\/127\.0\.0\.1:\d+\/files\//m)
    expect(made.junit).toContain('<testsuites tests="5" failures="0"')
    expect(forge.comments[0]?.body).toContain('1 changed · 4 new')
    expect(made.printed).not.toContain(KEY)
  })

  it('asks for a token for its server, and sends it', async context => {
    const { cwd, env } = await prepare(context)
    const site = await closed(startTokenSite())
    const job = { ...env, UPLOAD_SERVER_TOKEN: site.issue(site.url) }
    const made = await runComponent({ cwd, env: job }, { files: 'shots', server: site.url })
    expect(made.exitCode, made.printed).toBe(0)
    expect(made.job.id_tokens).toEqual({ UPLOAD_SERVER_TOKEN: { aud: '$[[ inputs.server ]]' } })
    expect(made.dotenv).toMatch(/^UPLOAD_STORED=5$/m)
    expect(made.printed).not.toContain('eyJ')
  })

  it('fails and says why when the server is down', async context => {
    const { cwd, env } = await prepare(context)
    const place = { cwd, env: { ...env, UPLOAD_SERVER_KEY: KEY } }
    const down = await runComponent(place, { files: 'shots/first.png', ...DOWN })
    expect(down).toMatchObject({ exitCode: 4, dotenv: expect.stringMatching(/^UPLOAD_FAILED=1$/m) })
    expect(down.printed).toMatch(/can't be reached|nothing listens/)
  })
})
