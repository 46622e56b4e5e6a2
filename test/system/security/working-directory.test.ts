import { existsSync } from 'node:fs'
import { copyFile, mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type CliResult, runBuilt, runCli } from '../../cli/run-cli.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { eventually } from '../../helpers/eventually.ts'
import { formOf, post } from '../../helpers/form.ts'
import { makePicture } from '../../helpers/picture.ts'
import { spawnServer } from '../../helpers/spawn-server.ts'

type Files = Record<string, unknown>

/**
 * A repository of somebody else, the home of the user beside it, and a file that is there as soon as the stranger's code
 * has run.
 *
 * @param brings files of the repository, made of a command that is the stranger's code
 */
async function cloneRepository(brings: (command: readonly string[]) => Files, own: Files = {}) {
  const root = await makeDirectory()
  const [cwd, home, proof] = [join(root, 'repo'), join(root, 'home'), join(root, 'proof')]
  const command = ['sh', '-c', `touch ${proof}; cat >/dev/null; echo https://img.example/a`]
  const evil = `import { writeFileSync } from 'node:fs'\nwriteFileSync(${JSON.stringify(proof)}, '')\n`
  const repository: Files = {
    'evil.mjs': `${evil}export default () => []`,
    'a.png': makePicture(),
    'note.md': '![](a.png)',
    ...brings(command),
  }
  for (const [folder, files] of [
    [cwd, repository],
    [home, own],
  ] as const)
    for (const [name, content] of Object.entries(files)) {
      const isReady = typeof content === 'string' || Buffer.isBuffer(content)
      await mkdir(dirname(join(folder, name)), { recursive: true })
      await writeFile(join(folder, name), isReady ? content : JSON.stringify(content))
    }
  await mkdir(home, { recursive: true })
  const env = { HOME: home, XDG_DATA_HOME: join(home, 'data'), UPLOAD_SERVER_CONFIG: '' }
  return {
    ...{ cwd, home, env },
    /** Whether the stranger's code ran. */
    wasRun: () => existsSync(proof),
    run: (...args: string[]): Promise<CliResult> => runCli(args, { cwd, env }),
    serve: (more: Record<string, string> = {}, ...args: string[]) =>
      spawnServer(['--port', '0', ...args], { directory: cwd, env: { ...env, ...more } }),
  }
}

const LOCAL = { local: { Default: { directory: 'pictures', urlPrefix: 'https://img.example' } } }
const USER_CONFIG = '.config/upload-server/config.json'
const NOT_USED = './upload-server.json is not used. Start with --config upload-server.json to use it.'

/** A configuration that runs code in every way there is. */
const codeBy = (command: readonly string[]) => ({
  plugins: ['./evil.mjs'],
  default: 'command/x',
  providers: { command: { x: { command } }, ...LOCAL },
  finalization: { hooks: [{ name: 'x', command }] },
})

/** Variables that run code, or lead to a configuration that does. */
function dotenv(command: readonly string[]): Files {
  const hooks = JSON.stringify([{ name: 'x', command }])
  const config = { plugins: ['./evil.mjs'], providers: LOCAL }
  const up = { ...config, plugins: ['../evil.mjs'] }
  const lines = [
    ...['UPLOAD_SERVER_CONFIG=other.json', 'upload_server_config=other.json', 'XDG_CONFIG_HOME=.', 'HOME=.'],
    ...['UPLOAD_SERVER__PLUGINS=./evil.mjs', `upload_server__plugins='["./evil.mjs"]'`],
    ...['UPLOAD_SERVER__DEFAULT=local', 'NODE_OPTIONS=--import=./evil.mjs'],
    `UPLOAD_SERVER__PROVIDERS__COMMAND__X__COMMAND='${JSON.stringify(command)}'`,
    `UPLOAD_SERVER__PROVIDERS='${JSON.stringify({ command: { x: { command } } })}'`,
    `UPLOAD_SERVER__FINALIZATION__HOOKS='${hooks}'`,
    `UPLOAD_SERVER__FINALIZATION='{ "hooks": ${hooks} }'`,
  ]
  const other = { 'other.json': config, 'upload-server/config.json': up }
  return { ...other, [USER_CONFIG]: { ...up, plugins: ['../../evil.mjs'] }, '.env': lines.join('\n') }
}

const words = (line: string) => line.split(' ')
const COMMANDS = [
  'upload a.png',
  'markdown .',
  'history',
  'remove x --yes',
  'finalize',
  'check',
  'heartbeat',
].map(words)
const TAB = ['complete -- upload --picbed ', 'complete -- check '].map(words)

describe('code of a cloned folder is not run', () => {
  it('by ./upload-server.json', async () => {
    const { run, wasRun } = await cloneRepository(command => ({ 'upload-server.json': codeBy(command) }))
    for (const args of COMMANDS)
      expect((await run(...args)).stderr, args[0]).not.toContain('upload-server.json')
    for (const args of TAB)
      expect(await run(...args)).toEqual({ code: 0, stdout: expect.stringMatching(/^local/), stderr: '' })
    for (const args of [['show'], ['validate'], ['schema']])
      expect(await run('config', ...args)).toMatchObject({
        code: 0,
        stderr: expect.stringMatching(/^\.\/upload-server\.json is not used\. Start with/),
      })
    await run('init', '--yes', '--provider', 'local')
    expect(wasRun()).toBe(false)
  })

  it('by variables in ./.env', async () => {
    const { cwd, env, run, wasRun, serve } = await cloneRepository(dotenv)
    for (const args of COMMANDS) await run(...args)
    for (const args of [['mcp'], ['upload', 'a.png']]) await runBuilt(args, { cwd, env })
    for (const args of [...TAB, ['config', 'show'], ['config', 'validate'], ['config', 'schema']])
      expect(await run(...args)).toMatchObject({ code: 0, stderr: expect.not.stringContaining('.env') })
    await run('init', '--yes', '--provider', 'local')
    const server = await serve()
    await post(`${await server.url}/upload`, { body: formOf({ 'a.txt': 'x' }) })
    expect(wasRun()).toBe(false)
  })

  it('by a server that finds such a file, or gets it later', async () => {
    const { cwd, serve, wasRun } = await cloneRepository(command => ({ 'own.json': codeBy(command) }))
    for (const isThere of [true, false]) {
      const file = join(cwd, 'upload-server.json')
      if (isThere) await copyFile(join(cwd, 'own.json'), file)
      else await rm(file)
      const server = await serve()
      const url = await server.url
      expect(server.errors()).toBe(isThere ? `${NOT_USED}\n` : '')
      await copyFile(join(cwd, 'own.json'), file)
      server.process.kill('SIGHUP')
      await eventually(() => expect(server.lines.join('\n')).toContain('Configuration reloaded'))
      await post(`${url}/upload`, { body: formOf({ 'a.txt': 'x' }) })
    }
    expect(wasRun()).toBe(false)
  })

  it('by a package of the name of a plugin that the environment names', async () => {
    const { cwd, env, wasRun } = await cloneRepository(() => ({
      'upload-server.json': { providers: LOCAL },
      'node_modules/upload-server-provider-x/package.json': { main: '../../evil.mjs' },
    }))
    const named = { ...env, UPLOAD_SERVER__PLUGINS: 'upload-server-provider-x' }
    for (const args of [['history'], ['check'], ['config', 'show'], ['serve']])
      expect(await runCli(args, { cwd, env: named }), args[0]).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('the package is not installed'),
      })
    expect(wasRun()).toBe(false)
  })

  it('by a program of the name that the configuration of the user has', async () => {
    const script = 'cat > /dev/null\necho https://img.example/own\n'
    const place = await cloneRepository(command => ({ 'store.sh': `cat > /dev/null\n${command[2]}` }), {
      [USER_CONFIG]: {
        default: 'command/x',
        providers: { command: { x: { command: ['sh', 'store.sh'] } } },
        finalization: { hooks: [{ name: 'y', command: ['sh', 'store.sh'] }] },
      },
      [join(dirname(USER_CONFIG), 'store.sh')]: script,
    })
    expect(await place.run('upload', 'a.png')).toMatchObject({ code: 0, stdout: 'https://img.example/own\n' })
    expect(place.wasRun()).toBe(false)
  })

  it('but is when its owner says so', async () => {
    const { run, wasRun } = await cloneRepository(command => ({ 'upload-server.json': codeBy(command) }))
    const { code, stderr } = await run('upload', 'a.png', '--config', 'upload-server.json')
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.not.stringContaining('not used') })
    expect(wasRun()).toBe(true)
  })
})

it('the tab key and heartbeat load no plugin of any configuration', async () => {
  const { run, wasRun, cwd, env } = await cloneRepository(() => ({}), {
    [USER_CONFIG]: { plugins: ['../../../repo/evil.mjs'], providers: { theirs: { a: {} } } },
  })
  for (const args of TAB) expect((await run(...args)).stdout).toMatch(/^theirs/)
  expect(await run('heartbeat', '-c', join(cwd, '../home', USER_CONFIG))).toMatchObject({ code: 1 })
  const named = { ...env, UPLOAD_SERVER__PLUGINS: '../../../repo/evil.mjs' }
  for (const args of [...TAB, ['heartbeat']]) await runCli(args, { cwd, env: named })
  expect(wasRun()).toBe(false)
  expect((await run('check')).stderr).toContain('providers.theirs: is not a provider')
  expect(wasRun()).toBe(true)
})

describe('a secret of the user does not go into a configuration that was only found,', () => {
  const providersOf = (urlPrefix: string) => ({ local: { Default: { directory: 'pictures', urlPrefix } } })

  it.each(['${TOKEN}', '${file:../home/secret}', '${file:link}', '${file:/dev/zero}'])(
    'by %s',
    async value => {
      const { cwd, env } = await cloneRepository(
        () => ({ 'upload-server.json': { providers: providersOf(`https://evil.example/${value}`) } }),
        { secret: 'hush' },
      )
      await symlink('../home/secret', join(cwd, 'link'))
      const { code, stdout, stderr } = await runCli(['config', 'show'], {
        cwd,
        env: { ...env, TOKEN: 'hush' },
      })
      expect({ code, stderr }).toEqual({ code: 0, stderr: `${NOT_USED}\n` })
      expect(stdout).not.toMatch(/hush|evil/)
    },
  )

  it('by options of the environment beside its own', async () => {
    const github = { apiUrl: 'https://evil.example', repo: 'me/img' }
    const { cwd, env } = await cloneRepository(() => ({
      'upload-server.json': { providers: { github: { Default: github } } },
    }))
    const given = { ...env, UPLOAD_SERVER__PROVIDERS__GITHUB__DEFAULT__TOKEN: 'hush' }
    const { code, stderr } = await runCli(['config', 'validate'], { cwd, env: given })
    // Only the options of the environment are left, and they are incomplete.
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringContaining('github.Default.repo: is missing'),
    })
  })
})

it('a .env of the working directory does not send elsewhere what the configuration of the user has', async () => {
  const github = { repo: 'me/img', token: 'hush', apiUrl: '${API}' }
  const { run } = await cloneRepository(
    () => ({
      '.env':
        'API=https://evil.example\nUPLOAD_SERVER__PROVIDERS__GITHUB__DEFAULT__APIURL=https://evil.example\nUPLOAD_SERVER__NETWORK__PROXY=http://evil.example',
    }),
    {
      [USER_CONFIG]: { providers: { github: { Default: github } } },
      [`${dirname(USER_CONFIG)}/.env`]: 'API=https://api.example',
    },
  )
  const { stdout, stderr } = await run('config', 'show')
  expect(JSON.parse(stdout)).toMatchObject({
    network: { proxy: 'environment' },
    providers: { github: { Default: { apiUrl: 'https://api.example' } } },
  })
  expect(stderr).toBe('')
})
