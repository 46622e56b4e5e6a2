import { cp, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { ConfigError, showConfig } from '../../src/config/load.ts'
import { loadPlugins } from '../../src/config/plugins.ts'
import { wholeSchema } from '../../src/config/providers.ts'
import * as z from '../../src/packages/zod.ts'
import { makeMachine } from '../helpers/load-config.ts'

const SHELF = fileURLToPath(new URL('../../docs/examples/upload-server-provider-shelf', import.meta.url))
const SAVED = { shelf: { pictures: { url: 'http://127.0.0.1:9', token: 'of-the-shelf' } } }

/** A provider in a file of its own. */
const pluginOf = (type: string, config = 'z.object({})') =>
  `export default ({ defineProvider, z }) => defineProvider({ type: '${type}', config: ${config}, open: () => ({}) })`

async function setUp(config: object, files: Record<string, string> = {}) {
  const { cwd, load } = await makeMachine({ ...files, 'c.json': config })
  return { cwd, load: (env = {}) => load({ env, file: 'c.json' }) }
}

async function problemsOf(config: object, files: Record<string, string> = {}): Promise<readonly string[]> {
  const { cwd, load } = await setUp(config, files)
  const error = await load().catch((error: unknown) => error)
  if (!(error instanceof ConfigError)) throw error
  return error.problems.map(problem => problem.replaceAll(cwd, 'CWD'))
}

it('finds a package from the folder of the configuration, and masks its secrets', async () => {
  const { cwd, load } = await setUp({ plugins: ['upload-server-provider-shelf'], providers: SAVED })
  const folder = join(cwd, 'node_modules', 'upload-server-provider-shelf')
  await cp(SHELF, folder, { recursive: true })
  const config = await load()
  expect(config.destinations).toMatchObject([{ type: 'shelf', name: 'pictures', secrets: ['of-the-shelf'] }])
  expect(config.secrets).toEqual(['of-the-shelf'])
  expect(JSON.stringify(showConfig(config, text => text))).not.toContain('of-the-shelf')
  expect(config.ownPaths).toContain(dirname(folder))
})

it('reads a file again when it has changed, and watches it', async () => {
  const { cwd, load } = await setUp(
    { plugins: ['./mine.mjs'], providers: { mine: { a: {} } } },
    { 'mine.mjs': pluginOf('mine') },
  )
  expect((await load()).files).toContain(join(cwd, 'mine.mjs'))
  await writeFile(join(cwd, 'mine.mjs'), pluginOf('mine', "z.object({ late: z.string().default('yes') })"))
  expect((await load()).destinations[0]?.options).toEqual({ late: 'yes' })
})

it('takes options of plugins, and plugins themselves, from variables', async () => {
  const { load } = await setUp({ providers: SAVED })
  const config = await load({
    UPLOAD_SERVER__PLUGINS: join(SHELF, 'index.js'),
    UPLOAD_SERVER__PROVIDERS__SHELF__PICTURES__TOKEN: 'of-a-variable',
  })
  expect(config.destinations[0]?.options['token']).toBe('of-a-variable')
})

it('runs once at a start, also with variables', async () => {
  const counting = `globalThis.runsOfPlugin = (globalThis.runsOfPlugin ?? 0) + 1; return `
  const code = pluginOf('mine').replace('=> define', `=> { ${counting} define`)
  const { load } = await setUp(
    { plugins: ['./mine.mjs'], providers: { mine: { a: {} } } },
    { 'mine.mjs': `${code} }` },
  )
  await load({ UPLOAD_SERVER_LOG_LEVEL: 'debug' })
  expect((globalThis as { runsOfPlugin?: number }).runsOfPlugin).toBe(1)
})

it.each([
  ['for import alone', { exports: { '.': { types: './x.d.ts', import: './lib/x.js' } } }],
  ['with one address', { exports: './lib/x.js' }],
  ['with "main"', { main: 'lib/x.js' }],
  ['that a compiler made CommonJS of', { type: 'commonjs', main: 'lib/common.js' }],
])('loads packages %s', async (_, manifest) => {
  const code = pluginOf('mine')
  const { load } = await setUp(
    { plugins: ['@me/mine'], providers: { mine: { a: {} } } },
    {
      'node_modules/@me/mine/package.json': JSON.stringify({ type: 'module', ...manifest }),
      'node_modules/@me/mine/lib/x.js': code,
      'node_modules/@me/mine/lib/common.js': code.replace(
        'export default',
        'exports.__esModule = true; exports.default =',
      ),
    },
  )
  expect((await load()).destinations.map(one => one.type)).toEqual(['mine'])
})

it('takes several providers of one plugin', async () => {
  const two = `${pluginOf('one').replace('export default', 'const one =')}
${pluginOf('two').replace('export default', 'const two =')}
export default async kit => [one(kit), two(kit)]`
  const { load } = await setUp(
    { plugins: ['./two.mjs'], providers: { one: { a: {} }, two: { a: {} } }, default: 'two' },
    { 'two.mjs': two },
  )
  expect((await load()).destinations.map(one => one.type)).toEqual(['one', 'two'])
})

const KIT = "what the kit's defineProvider made"
const NO_ERROR = 'it threw a value that is not an error:'

it.each([
  ['that is not there', 'the file CWD/x.mjs does not exist'],
  ['that throws', 'no luck', "throw new Error('no luck')"],
  ['that throws what is no error', 'no luck', "throw 'no luck'"],
  ['that throws nothing', `${NO_ERROR} undefined`, 'throw undefined'],
  ['that throws an object', `${NO_ERROR} { code: 1 }`, 'throw { code: 1 }'],
  ['that misses a package', "Cannot find package 'absent'", "import 'absent'"],
  ['that exports no function', 'export of CWD/x.mjs must be a function', 'export default 5'],
  ['that returns nothing', KIT, 'export default () => {}'],
  ['whose provider nobody defined', KIT, "export default () => ({ type: 'mine', open: () => ({}) })"],
  ['with a type that exists', 'already has a provider of the type "s3"', pluginOf('s3')],
  ['with a type that is an alias', 'already has a provider of the type "aws-s3"', pluginOf('aws-s3')],
  ['with a type that no name can be', 'the type "a/b" must be', pluginOf('a/b')],
  ['with a type that objects have', 'the type "__proto__" must be', pluginOf('__proto__')],
  [
    'that can not be opened',
    '"open" of "mine" must be a function',
    pluginOf('mine').replace('() => ({}) ', '5 '),
  ],
  [
    'with rules over several options',
    'belong in "validate"',
    pluginOf('mine', 'z.object({}).check(() => {})'),
  ],
  ['without options', 'must be made by the kit', pluginOf('mine', '{}')],
  [
    'with an option of all',
    'option "link" of "mine" is reserved',
    pluginOf('mine', 'z.object({ link: z.string() })'),
  ],
])('names a plugin %s, and what is wrong', async (_, reason, text = '') => {
  const files: Record<string, string> = text === '' ? {} : { 'x.mjs': text }
  // A type that nobody has may be one of the plugin's, and is no mistake of its own.
  const problems = await problemsOf({ plugins: ['./x.mjs'], providers: { mine: { a: {} } } }, files)
  expect(problems).toEqual([expect.stringContaining('plugins[0]: could not load "./x.mjs": ')])
  expect(problems[0]).toContain(reason)
})

it.each([
  ['./', 'CWD is a folder. Specify the file in it'],
  ['none', 'the package is not installed. Run in CWD: npm install none'],
])('names what is no plugin: %s', async (name, reason) => {
  expect(await problemsOf({ plugins: [name] })).toEqual([
    expect.stringContaining(`plugins[0]: could not load "${name}": ${reason}`),
  ])
})

it.each([
  ["validate() { throw new TypeError('no luck') }", 'TypeError: no luck'],
  ["validate: async () => 'wrong'", 'its "validate" must return a sentence, or undefined'],
  [
    "config: z.object({ n: z.string().check(() => { throw new TypeError('no luck') }) })",
    'TypeError: no luck',
  ],
])('names a plugin that fails while options are checked: %s', async (member, reason) => {
  const code = pluginOf('mine', 'z.object({ n: z.string() })').replace('open:', `${member}, open:`)
  const config = { plugins: ['./x.mjs'], providers: { mine: { a: { n: 'x' } } } }
  expect(await problemsOf(config, { 'x.mjs': code })).toEqual([
    `providers.mine.a: can't be checked, because the plugin "./x.mjs" failed: ${reason}`,
  ])
})

it('refuses two plugins with one type, and knows the types of plugins when one is misspelt', async () => {
  const files = { 'a.mjs': pluginOf('mine'), 'b.mjs': pluginOf('mine') }
  expect(await problemsOf({ plugins: ['./a.mjs', './b.mjs'] }, files)).toEqual([
    'plugins[1]: could not load "./b.mjs": another plugin already has a provider of the type "mine"',
  ])
  expect(await problemsOf({ plugins: ['./a.mjs'], providers: { mime: { a: {} } } }, files)).toEqual([
    'providers.mime: is not a provider. Did you mean "mine"?',
  ])
})

it('has the options of plugins in the schema for editors', async () => {
  const { cwd } = await setUp({})
  await symlink(SHELF, join(cwd, 'shelf'))
  const plugins = await loadPlugins(['./shelf/index.js'], cwd, (_, message) => expect.fail(message))
  const schema = JSON.stringify(z.toJSONSchema(await wholeSchema([], plugins), { unrepresentable: 'any' }))
  expect(schema).toContain('Token with write access.')
})

it('does not wait for ever for a plugin: without anything else to do the program would end without a word', async () => {
  const { cwd } = await setUp({}, { 'x.mjs': 'export default () => new Promise(() => {})' })
  const problems: string[] = []
  await loadPlugins(['./x.mjs'], cwd, (_, message) => problems.push(message), 20)
  expect(problems).toEqual(['could not load "./x.mjs": it did not load within 0.02 s'])
})
