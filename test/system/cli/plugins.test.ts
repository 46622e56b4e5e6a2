import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { runBuilt, runCli } from '../../cli/run-cli.ts'
import { makeDirectory } from '../../helpers/directory.ts'
import { eventually } from '../../helpers/eventually.ts'
import { formOf, post } from '../../helpers/form.ts'
import { runProgram } from '../../helpers/run-program.ts'
import { BIN, spawnServer } from '../../helpers/spawn-server.ts'

const EXAMPLES = fileURLToPath(new URL('../../../docs/examples', import.meta.url))

/** A provider that keeps nothing, in a file of its own. What it says to the console is in nobody's way. */
const echo = (host: string) => `
console.log('echo is here')
export default ({ defineProvider, z, secret, joinUrl }) => defineProvider({
  type: 'echo',
  config: z.object({ word: secret().describe('Any word.') }),
  open: () => ({ put: async ({ key }) => ({ url: joinUrl('https://${host}.example', key) }) }),
})`

const CONFIG = {
  server: { port: 0 },
  plugins: ['./echo.mjs'],
  providers: { echo: { Default: { word: 'hush', keyTemplate: '{filename}{extname}' } } },
}

async function setUp(config: object = CONFIG, code = echo('one')) {
  const cwd = await makeDirectory()
  await writeFile(join(cwd, 'upload-server.json'), JSON.stringify(config))
  await writeFile(join(cwd, 'echo.mjs'), code)
  return cwd
}

async function linkFrom(url: string): Promise<unknown> {
  return (await post(`${url}/upload`, { body: formOf({ 'a.txt': 'x' }) })).result
}

/** A plugin whose destination can't be opened. */
const BROKEN = echo('one').replace(
  'open: () =>',
  "open: () => { throw new TypeError('no luck') }, was: () =>",
)
const SAID = `echo/Default can't be opened by the plugin "./echo.mjs": TypeError: no luck. Correct the plugin or "providers.echo.Default", or remove it.`

it.each([['serve'], ['check'], ['upload', 'echo.mjs'], ['config', 'validate']])(
  '%s names a plugin whose destination can not be opened',
  async (...args) => {
    const run = args[0] === 'serve' ? runBuilt : runCli
    const cwd = await setUp(CONFIG, BROKEN)
    const { code, stdout, stderr } = await run(args, { cwd })
    expect({ code, said: stdout + stderr }).toEqual({ code: 1, said: expect.stringContaining(SAID) })
  },
)

it('a plugin stores for a server, which reloads it when it changes, and goes on when it is broken, and says how', async () => {
  const cwd = await setUp()
  const server = await spawnServer([], { directory: cwd })
  const url = await server.url
  const broken = 'Could not reload the configuration. The previous one stays in use.'
  for (const [code, said] of [
    ['export default {{', broken],
    [BROKEN, `${broken} ${SAID}`],
  ] as const) {
    await writeFile(join(cwd, 'echo.mjs'), code)
    await eventually(() =>
      expect(server.lines.map(line => JSON.parse(line).msg)).toContainEqual(expect.stringContaining(said)),
    )
    expect(await linkFrom(url)).toEqual(['https://one.example/a.txt'])
  }
  await writeFile(join(cwd, 'echo.mjs'), echo('two'))
  await eventually(async () => expect(await linkFrom(url)).toEqual(['https://two.example/a.txt']))
})

it('a plugin that fails behind the back of the server is named', async () => {
  const cwd = await setUp(CONFIG, `Promise.reject(new Error('no luck'))\n${echo('one')}`)
  // Not by runCli, which wants no stack.
  const args = [BIN, 'config', 'validate', '--config', 'upload-server.json']
  const { exitCode, stderr } = await runProgram(process.execPath, args, { cwd })
  expect(exitCode).toBe(1)
  expect(stderr).toContain(`upload-server stopped because of a bug in "${join(cwd, 'echo.mjs')}".`)
  expect(stderr).toContain('Error: no luck')
})

it('config validate of the built program says where a plugin is no JavaScript', async () => {
  const cwd = await setUp(CONFIG, 'const a = 1\nexport default {{')
  const { code, stderr } = await runBuilt(['config', 'validate'], { cwd })
  expect(code).toBe(1)
  expect(stderr).toContain('plugins[0]: could not load "./echo.mjs": SyntaxError: ')
  expect(stderr).toContain(`node --check ${join(cwd, 'echo.mjs')}`)
})

/** The providers in a schema, where equal parts are references. */
function providersIn(text: string): object {
  const schema = JSON.parse(text)
  const { $ref = '', properties } = schema.properties.providers
  return properties ?? schema.$defs[$ref.replace('#/$defs/', '')].properties
}

it('config schema of the built program has the options of a plugin whatever that prints, and goes on without one that is broken', async () => {
  const cwd = await setUp()
  const whole = await runBuilt(['config', 'schema'], { cwd })
  expect(providersIn(whole.stdout)).toHaveProperty('echo')
  await writeFile(join(cwd, 'echo.mjs'), 'export default 5')
  const { code, stdout, stderr } = await runCli(['config', 'schema'], { cwd })
  expect(code).toBe(0)
  expect(providersIn(stdout)).not.toHaveProperty('echo')
  expect(stderr).toContain('The schema does not include plugins of the configuration. plugins[0]: ')
})

it('init writes a configuration with the plugin that it was told of', async () => {
  const cwd = await makeDirectory()
  await writeFile(join(cwd, 'echo.mjs'), echo('one'))
  const init = 'init --yes --no-check --plugin ./echo.mjs --set word=hush -c x/c.json'
  expect(await runCli(init.split(' '), { cwd })).toMatchObject({ code: 0 })
  const { code, stdout } = await runCli(['config', 'validate', '-c', 'x/c.json'], { cwd })
  expect(code).toBe(0)
  expect(stdout).toContain('Destinations: echo/Default')
  const wrong = await runCli(['init', '--yes', '--plugin', './none.mjs'], { cwd })
  expect(wrong.code).toBe(1)
  expect(wrong.stderr).toContain(`--plugin: could not load "${join(cwd, 'none.mjs')}": `)
})

it('check tries a destination of a package', async () => {
  const { startShelf } = await import(join(EXAMPLES, 'upload-server-provider-shelf', 'shelf-server.js'))
  const shelf = await startShelf('of-the-shelf')
  const url = `http://127.0.0.1:${shelf.port}`
  const cwd = await setUp({
    plugins: ['upload-server-provider-shelf'],
    providers: { shelf: { pictures: { url, token: 'of-the-shelf' } } },
  })
  await cp(EXAMPLES, join(cwd, 'packages'), { recursive: true })
  await symlink('packages', join(cwd, 'node_modules'))
  const { code, stdout } = await runCli(['check'], { cwd })
  await shelf.close()
  expect(stdout).toContain('ok      shelf/pictures: stored and downloaded.')
  expect(code).toBe(0)
})

it('an upload replaces no plugin, nor what one imports, and so runs no code in the server', async () => {
  const template = { keyTemplate: '{path}/{filename}{extname}', onConflict: 'replace' }
  const local = { Default: { directory: '.', serve: true, ...template } }
  const plugins = ['./echo.mjs', 'mine']
  const cwd = await setUp({ server: { port: 0 }, plugins, providers: { local } })
  const code = echo('two').replace("'echo'", "'mine'")
  for (const name of ['mine', 'imported']) {
    await mkdir(join(cwd, 'node_modules', name), { recursive: true })
    await writeFile(join(cwd, 'node_modules', name, 'index.mjs'), code)
    await writeFile(join(cwd, 'node_modules', name, 'package.json'), '{ "exports": "./index.mjs" }')
  }
  const url = await (await spawnServer([], { directory: cwd })).url
  const attack = (path: string, name: string) =>
    post(`${url}/upload?path=${path}`, { body: formOf({ [name]: 'process.exit()' }) })
  expect(await attack('pictures', 'echo.mjs')).toMatchObject({ status: 200 })
  for (const [path, name] of [
    ['', 'echo.mjs'],
    ['node_modules/mine', 'index.mjs'],
    ['node_modules/imported', 'index.mjs'],
    ['node_modules/imported', 'new.mjs'],
  ] as const) {
    const { status, message } = await attack(path, name)
    expect(status).not.toBe(200)
    expect(message).toContain('is a file of the server itself')
  }
  expect(await readFile(join(cwd, 'node_modules', 'imported', 'index.mjs'), 'utf8')).toBe(code)
})
