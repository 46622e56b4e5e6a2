// Writes config.schema.json and the generated parts of the documents from what was built: `npm run generate`.
// With --check it writes nothing, names what is stale and ends with 1.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describeConfig } from '../dist/cli/config.js'
import { destinationSchema } from '../dist/config/destination.js'
import { configSchema } from '../dist/config/schema.js'
import { mapMarked, toJsonSchema } from '../dist/options.js'
import { loadProviders, PROVIDER_TYPES } from '../dist/providers/registry.js'
import { OPTIONS } from '../dist/routes/options.js'
import { describeCommands } from './commands.mjs'

process.chdir(fileURLToPath(new URL('..', import.meta.url)))

const providers = await loadProviders()
const commands = await describeCommands()

/** What stands between `<!-- generated: NAME … -->` and `<!-- /generated -->`: where it comes from, and its text. */
const PARTS = {
  destinations: { from: 'src/providers', make: destinations },
  example: { from: '"about" of the provider', make: page => example(providerOf(page)) },
  options: { from: '"config" of the provider', make: page => optionsOf(providerOf(page)) },
  settings: { from: 'src/config/schema.ts', make: settings },
  destination: { from: 'src/config/destination.ts', make: () => options(destinationSchema) },
  signing: { from: '"about" of the providers', make: signing },
  request: { from: 'src/routes/options.ts', make: requestOptions },
  commands: { from: 'src/cli', make: () => commands },
  plugin: { from: 'docs/examples', make: () => exampleFile('index.js') },
  plugintest: { from: 'docs/examples', make: () => exampleFile('index.test.js') },
}

function exampleFile(name) {
  const code = readFileSync(`docs/examples/upload-server-provider-shelf/${name}`, 'utf8')
  return ['```js', code.trimEnd(), '```'].join('\n')
}

function requestOptions() {
  const rows = Object.entries(OPTIONS).map(([name, { aliases = [], description }]) => {
    const also = aliases.map(alias => ` Also accepted: \`${alias}\`.`).join('')
    return `| \`${name}\` | ${description}${also} |`
  })
  return ['| Name | Meaning |', '|---|---|', ...rows].join('\n')
}

function destinations() {
  const rows = providers.map(({ type, about }) => `| \`${type}\` | ${about.what} | ${about.testedAgainst} |`)
  return ['| Type | What it is | Tested against |', '|---|---|---|', ...rows].join('\n')
}

function signing() {
  const rows = providers.flatMap(({ type, about: { signs } }) => {
    if (signs === undefined) return []
    const option = signs === true ? '' : ` with \`${signs}\``
    return [`- [\`${type}\`](destinations/${type}.md)${option}`]
  })
  return rows.join('\n')
}

function providerOf(page) {
  return providers.find(({ type }) => type === basename(page, '.md'))
}

/** Secrets are variables on a page. */
function example({ type, about, config }) {
  const named = Object.entries(about.example).map(([name, values]) => [
    name,
    mapMarked(config, values, (text, is) =>
      is === 'secret' && /^[A-Z][A-Z0-9_]*$/.test(text) ? `\${${text}}` : text,
    ),
  ])
  const whole = { providers: { [type]: Object.fromEntries(named) }, default: `${type}/${named[0]?.[0]}` }
  return ['```json', show(whole), '```'].join('\n')
}

/** JSON as people write it: what fits into a line is one. */
function show(value, indent = '') {
  const flat = JSON.stringify(value, undefined, 1)
    .replace(/\n */g, ' ')
    .replace(/\[ (.*?) \]/g, '[$1]')
  if (typeof value !== 'object' || Array.isArray(value) || indent.length + flat.length <= 100) return flat
  const inner = `${indent}  `
  const members = Object.entries(value).map(
    ([name, one]) => `${inner}${JSON.stringify(name)}: ${show(one, inner)}`,
  )
  return `{\n${members.join(',\n')}\n${indent}}`
}

function settings() {
  const all = Object.entries(toJsonSchema(configSchema).properties).filter(([name]) => name !== '$schema')
  const single = all.filter(([, member]) => !member.properties)
  const sections = all.filter(([, member]) => member.properties)
  return [
    tableOf(rowsOf({ properties: Object.fromEntries(single) }, '')),
    ...sections.map(
      ([name, member]) => `### \`${name}\`\n\n${meaningOf(member)}\n\n${tableOf(rowsOf(member, name))}`,
    ),
  ].join('\n\n')
}

function optionsOf({ config, about }) {
  const template = '[key template](../configuration.md#key-templates)'
  const keys = ['host', 'other'].includes(about.family)
    ? `The host says where files lie. The last part of the key that the ${template} makes is the name it is told.`
    : `Where a file lies is its key, which the ${template} makes; \`{path}\` in it is the folder that a request asks for.`
  return `${options(config)}\n\n${keys}`
}

function options(schema) {
  return tableOf(rowsOf(toJsonSchema(schema), ''))
}

function tableOf(rows) {
  return ['| Option | Type | Default | Meaning |', '|---|---|---|---|', ...rows].join('\n')
}

/** A row for each option, those of sections and of lists included. */
function rowsOf({ properties = {}, required = [] }, path) {
  return Object.entries(properties).flatMap(([name, member]) => {
    const full = path ? `${path}.${name}` : name
    if (member.properties) return rowsOf(member, full)
    const standard = member.default === undefined ? '' : `\`${JSON.stringify(member.default)}\``
    const isNeeded = path === '' && required.includes(name)
    const row = `| \`${full}\` | ${typeOf(member)} | ${isNeeded ? 'needed' : standard} | ${meaningOf(member)} |`
    return [row, ...(member.items?.properties ? rowsOf(member.items, `${full}[]`) : [])]
  })
}

function typeOf(option) {
  if (option.enum) return option.enum.map(value => `\`${value}\``).join(', ')
  if (option.anyOf) return [...new Set(option.anyOf.map(typeOf))].join(' or ')
  if (option.type === 'array') return `list of ${option.items ? typeOf(option.items) : 'anything'}`
  if (Array.isArray(option.type)) return option.type.join(' or ')
  if (option.type === 'integer') return 'number'
  return option.type ?? 'anything'
}

/** Markdown takes `<type>` for a tag and leaves it out, and `|` for the end of a cell. */
function meaningOf({ description = '' }) {
  return description.replaceAll('<', '&lt;').replaceAll('|', '\\|')
}

/** What a page begins with that nobody has written yet. */
function newPage(type) {
  return `# \`${type}\`\n\n<!-- generated: example -->\n<!-- /generated -->\n\n<!-- generated: options -->\n<!-- /generated -->\n`
}

function fill(path, text) {
  return text.replace(
    /<!-- generated: (\w+).*-->\n[\s\S]*?<!-- \/generated -->/g,
    (_, name) =>
      `<!-- generated: ${name}, from ${PARTS[name].from}, by "npm run generate" -->\n\n${PARTS[name].make(path)}\n\n<!-- /generated -->`,
  )
}

const pages = new Set([
  ...PROVIDER_TYPES.map(type => `docs/destinations/${type}.md`),
  ...readdirSync('docs/destinations').map(name => `docs/destinations/${name}`),
])
const wanted = new Map([
  ['config.schema.json', `${JSON.stringify(await describeConfig(), undefined, 2)}\n`],
  ...[
    'README.md',
    'docs/api.md',
    'docs/cli.md',
    'docs/configuration.md',
    'docs/write-a-provider.md',
    ...pages,
  ].map(path => [
    path,
    fill(path, existsSync(path) ? readFileSync(path, 'utf8') : newPage(basename(path, '.md'))),
  ]),
])
for (const [path, text] of wanted) {
  if (existsSync(path) && readFileSync(path, 'utf8') === text) continue
  process.stdout.write(`${path}\n`)
  if (process.argv.includes('--check')) process.exitCode = 1
  else writeFileSync(path, text)
}
