// Writes the generated parts of the documents from what was built: `npm run generate`.
// With --check it writes nothing, names what is stale and ends with 1.
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { destinationSchema } from '../build/config/destination.js'
import { configSchema } from '../build/config/schema.js'
import { toJsonSchema } from '../build/options.js'
import { editorsFor } from '../build/page/editors.js'
import { en } from '../build/page/words-en.js'
import { zh } from '../build/page/words-zh.js'
import { loadProviders, PROVIDER_TYPES } from '../build/providers/registry.js'
import { OPTIONS } from '../build/routes/options.js'
import { ACTION, describeCommands } from './commands.mjs'

process.chdir(fileURLToPath(new URL('..', import.meta.url)))

const providers = await loadProviders()
const abilities = new Map(await Promise.all(providers.map(async one => [one.type, await abilitiesOf(one)])))
const commands = describeCommands()

/** What stands between `<!-- generated: NAME -->` and `<!-- /generated -->` of a page. */
const PARTS = {
  matrix,
  options: page => optionsOf(providerOf(page)),
  common: () => tableOf(SETTINGS.filter(({ path }) => COMMON.includes(path))),
  settings,
  destination: () => options(destinationSchema),
  signing,
  request: requestOptions,
  commands: () => commands,
  editors: page =>
    editors(page)
      .map(([name, text]) => `- **${name}**${page.includes('zh-CN') ? '：' : ': '}${text}`)
      .join('\n'),
  typora: page => editors(page)[0][1],
  obsidian: page => editors(page)[1][1],
  vscode: page => editors(page)[2][1],
  plugin: () => exampleFile('index.js'),
}

function exampleFile(name) {
  const code = readFileSync(`docs/examples/upload-server-provider-shelf/${name}`, 'utf8')
  return ['```js', code.trimEnd(), '```'].join('\n')
}

/** Of a server on the reader's machine: the name of each editor, and what to type. */
function editors(page) {
  const local = { base: 'http://127.0.0.1:36677', command: 'upload-server upload' }
  const words = page.includes('zh-CN') ? zh : en
  return editorsFor(local, words).map(({ name, text, code }) => [
    name,
    `${text}${/：$/.test(text) ? '' : ' '}\`${code}\``,
  ])
}

function requestOptions() {
  const rows = Object.entries(OPTIONS).map(([name, { aliases = [], description }]) => {
    const also = aliases.map(alias => ` Also accepted: \`${alias}\`.`).join('')
    return `| \`${name}\` | ${description}${also} |`
  })
  return ['| Name | Meaning |', '|---|---|', ...rows].join('\n')
}

function signing() {
  const rows = providers.flatMap(({ type, about: { signs } }) => {
    if (signs === undefined) return []
    const option = signs === true ? '' : ` with \`${signs}\``
    return [`- [\`${type}\`](../destinations/${type}.md)${option}`]
  })
  return rows.join('\n')
}

/** What hosts take at most, where no option says so; as they write it, or as their pages in docs/destinations say. */
const LARGEST = { catbox: '200 MB', imgbb: '32 MB', imgur: 'about 20 MB' }

/** What each destination can do. */
function matrix() {
  const rows = providers.map(({ type, about, config }) => {
    const { exists, remove } = abilities.get(type)
    const signs = about.signs === true ? 'yes' : about.signs ? `with \`${about.signs}\`` : 'no'
    const bytes = toJsonSchema(config).properties?.fileSize?.default
    const largest = LARGEST[type] ?? (bytes ? `${bytes} (\`fileSize\`)` : '–')
    return `| [\`${type}\`](${type}.md) | ${about.what} | ${exists} | ${remove} | ${signs} | ${largest} |`
  })
  return [
    '| Type | Stores in | Overwrite check | Removal | Private links | Maximum file size |',
    '|---|---|---|---|---|---|',
    ...rows,
  ].join('\n')
}

/** The example destinations of a provider's page, by their names. A new page has one with the options that `init` asks for. */
function examplesOf(type) {
  const page = `docs/destinations/${type}.md`
  if (!existsSync(page)) {
    const { about } = providers.find(one => one.type === type)
    const asked = about.choices[0].asks.filter(option => !option.endsWith('?'))
    const sample = option =>
      /url$/i.test(option) ? 'https://img.example.com' : `$\{${type}_${option}}`.toUpperCase()
    return { blog: Object.fromEntries(asked.map(option => [option, sample(option)])) }
  }
  const [, json] = /^## Configuration[\s\S]*?^```json\n([\s\S]*?)^```/m.exec(readFileSync(page, 'utf8')) ?? []
  return json === undefined ? {} : JSON.parse(json).providers[type]
}

/** Whether the targets of a provider's examples have `exists` and `remove`; an option of that name brings them. */
async function abilitiesOf({ type, config, open }) {
  const targets = await Promise.all(
    Object.entries(examplesOf(type)).map(([name, options]) =>
      open(config.parse(options), { name, warn() {} }),
    ),
  )
  const say = method => {
    if (method in config.shape) return `with \`${method}\``
    return targets.every(target => target[method] !== undefined) ? 'yes' : 'no'
  }
  const result = { exists: say('exists'), remove: say('remove') }
  await Promise.all(targets.map(target => target.close?.()))
  return result
}

function providerOf(page) {
  return providers.find(({ type }) => type === basename(page, '.md'))
}

/** What most people set. Everything else is advanced. */
const COMMON = [
  'default',
  'providers',
  'keyTemplate',
  'server.host',
  'server.port',
  'server.key',
  'server.publicUrl',
  'server.trustProxy',
  'auth.loopbackExempt',
  'limits.fileSize',
]

/** Lists of clients have these options, too; their rows are shown once. */
const LIKE_KEYS = ['auth.reverseProxy', 'auth.tokens[]']
const OF_CLIENTS = ['destinations', 'sources', 'quota', 'fileSize', 'types']

const SETTINGS = rowsOf(toJsonSchema(configSchema), '').filter(({ path }) => path !== '$schema')

function settings() {
  const { properties } = toJsonSchema(configSchema)
  const nameOf = ({ path }) => path.split('.')[0]
  const rest = SETTINGS.filter(({ path }) => !COMMON.includes(path))
  const isSection = name => properties[name].properties !== undefined
  const rowsIn = name => rest.filter(row => nameOf(row) === name)
  const names = [...new Set(rest.map(nameOf))].filter(name => isSection(name) && rowsIn(name).length > 3)
  return [
    ...names.map(name => `### \`${name}\`\n\n${meaningOf(properties[name])}\n\n${tableOf(rowsIn(name))}`),
    `### Others\n\n${tableOf(rest.filter(row => !names.includes(nameOf(row))))}`,
  ].join('\n\n')
}

function checkOf({ type, about }) {
  const command = `\`upload-server check ${type}/${Object.keys(examplesOf(type))[0]}\``
  const rest = abilities.get(type).remove === 'no' ? ', which stays there' : ''
  return `${command} stores a test image${rest}. Tested against: ${about.testedAgainst ?? 'a mock of the documented API'}.`
}

function optionsOf({ type, config, about }) {
  return [optionTable(type, config), ...describeKeys(type), checkOf({ type, about })].join('\n\n')
}

/** A vendor of S3, and a Git host, have options of another provider, which are on the page of that. */
function optionTable(type, config) {
  const rows = rowsOf(toJsonSchema(config), '')
  for (const other of ['s3', 'github']) {
    const theirs = other === type ? [] : rowsOf(toJsonSchema(providerOf(other).config), '')
    const own = rows.filter(({ text }) => !theirs.some(one => one.text === text))
    if (rows.length - own.length < 6) continue
    const missing = theirs.filter(({ path }) => !rows.some(row => row.path === path))
    const but = missing.length > 0 ? ` but ${missing.map(({ path }) => `\`${path}\``).join(', ')}` : ''
    const all = `All [options of \`${other}\`](${other}.md#options)${but}`
    return own.length === 0 ? `${all}.` : `${all}, and:\n\n${tableOf(own)}`
  }
  return tableOf(rows)
}

/** What is said of all others on docs/destinations/README.md. */
function describeKeys(type) {
  const key = '[object key](../reference/file-names.md)'
  if (type === 'command') return [`\`{key}\` inserts the ${key}.`]
  return type === 'http' ? [`\`{key}\` inserts the ${key}, and \`{filename}\` its last segment.`] : []
}

function options(schema) {
  return tableOf(rowsOf(toJsonSchema(schema), ''))
}

function tableOf(rows) {
  return [
    '| Option | Default, or type | Description |',
    '|---|---|---|',
    ...rows.map(({ text }) => text),
  ].join('\n')
}

/** A row for each option, those of sections and of lists included. */
function rowsOf({ properties = {}, required = [] }, path) {
  return Object.entries(properties).flatMap(([name, member]) => {
    const full = path ? `${path}.${name}` : name
    const row = (value, meaning) => ({ path: full, text: `| \`${full}\` | ${value} | ${meaning} |` })
    if (full === 'images' && !('server' in properties))
      return [row('object', `${meaningOf(member)} [Options](#images)`)]
    if (LIKE_KEYS.includes(path) && OF_CLIENTS.includes(name))
      return name === OF_CLIENTS[0]
        ? [
            {
              path: full,
              text: `| ${OF_CLIENTS.map(one => `\`${one}\``).join(', ')} of \`${path}\` | | As for \`auth.keys[]\`. |`,
            },
          ]
        : []
    if (member.properties) return rowsOf(member, full)
    const isNeeded = path === '' && required.includes(name)
    return [
      row(standardOf(member, isNeeded), meaningOf(member)),
      ...(member.items?.properties ? rowsOf(member.items, `${full}[]`) : []),
    ]
  })
}

/** The default shows the type. An empty list or object is no default worth showing. */
function standardOf(member, isNeeded) {
  const standard = JSON.stringify(member.default)
  if (isNeeded) return `${typeOf(member)}, required`
  if (standard === undefined || standard === '[]' || standard === '{}') return typeOf(member)
  return member.enum ? `${typeOf(member)}; default \`${standard}\`` : `\`${standard}\``
}

/** A long list is in the schema and in messages. */
function shorten(list) {
  return list.length > 10 ? [...list.slice(0, 4), '…'] : list
}

function typeOf(option) {
  if (option.enum) return shorten(option.enum.map(value => `\`${value}\``)).join(', ')
  if (option.anyOf) return [...new Set(option.anyOf.map(typeOf))].join(' or ')
  if (option.type === 'array') return `list of ${option.items ? typeOf(option.items) : 'anything'}`
  if (Array.isArray(option.type)) return option.type.join(' or ')
  if (option.type === 'integer') return 'number'
  return option.type ?? 'anything'
}

/** Markdown takes `<type>` for a tag and leaves it out, and `|` for the end of a cell. */
function meaningOf({ description = '' }) {
  // A URL is an example here, not a link.
  return description
    .replaceAll(/"(https?:[^\s"<|]+)"/g, '`$1`')
    .replaceAll('<', '&lt;')
    .replaceAll('|', '\\|')
}

/** The skeleton of every page; its author adds what the destination is, its credentials and its limits. */
function newPage(type) {
  const example = JSON.stringify({ providers: { [type]: examplesOf(type) } }, null, 2)
  const part = '<!-- generated: options -->\n<!-- /generated -->'
  return `# \`${type}\`\n\n## Configuration\n\n\`\`\`json\n${example}\n\`\`\`\n\n## Options\n\n${part}\n`
}

function fill(path, text) {
  if (path === 'action.yml')
    return text.replace(
      /^( *# generated: (\w+)\n)[\s\S]*?^( *# \/generated)/gm,
      (_, begin, name, end) => `${begin}${ACTION[name]}\n${end}`,
    )
  return text.replace(
    /<!-- generated: (\w+).*-->\n[\s\S]*?<!-- \/generated -->/g,
    (_, name) => `<!-- generated: ${name} -->\n\n${PARTS[name](path)}\n\n<!-- /generated -->`,
  )
}

const written = ['docs', ...readdirSync('docs').map(name => join('docs', name))]
  .filter(path => statSync(path).isDirectory())
  .flatMap(folder => readdirSync(folder).map(name => join(folder, name)))
  .filter(path => path.endsWith('.md'))
const pages = new Set([
  'README.md',
  'README.zh-CN.md',
  'action.yml',
  ...PROVIDER_TYPES.map(type => `docs/destinations/${type}.md`),
  ...written,
])
for (const path of pages) {
  const before = existsSync(path) ? readFileSync(path, 'utf8') : undefined
  const text = fill(path, before ?? newPage(basename(path, '.md')))
  if (before === text) continue
  process.stdout.write(`${path}\n`)
  if (process.argv.includes('--check')) process.exitCode = 1
  else writeFileSync(path, text)
}
