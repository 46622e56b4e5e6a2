// Writes the generated parts of the documents from what was built: `npm run generate`.
// With --check it writes nothing, names what is stale and ends with 1.
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { destinationSchema } from '../build/config/destination.js'
import { configSchema } from '../build/config/schema.js'
import { mapMarked, toJsonSchema } from '../build/options.js'
import { editorsFor } from '../build/page/editors.js'
import { examplesFor } from '../build/page/examples.js'
import { en } from '../build/page/words-en.js'
import { zh } from '../build/page/words-zh.js'
import { loadProviders, PROVIDER_TYPES } from '../build/providers/registry.js'
import { OPTIONS } from '../build/routes/options.js'
import { describeCommands } from './commands.mjs'

process.chdir(fileURLToPath(new URL('..', import.meta.url)))

const providers = await loadProviders()
const abilities = new Map(await Promise.all(providers.map(async one => [one.type, await abilitiesOf(one)])))
const commands = describeCommands()

/** What stands between `<!-- generated: NAME … -->` and `<!-- /generated -->`: where it comes from, and its text. */
const PARTS = {
  matrix: { from: 'src/providers', make: matrix },
  example: { from: '"about" of the provider', make: page => example(providerOf(page)) },
  check: { from: 'src/providers', make: page => checkOf(providerOf(page)) },
  options: { from: '"config" of the provider', make: page => optionsOf(providerOf(page)) },
  settings: { from: 'src/config/schema.ts', make: settings },
  destination: { from: 'src/config/destination.ts', make: () => options(destinationSchema) },
  signing: { from: '"about" of the providers', make: signing },
  request: { from: 'src/routes/options.ts', make: requestOptions },
  commands: { from: 'src/cli', make: () => commands },
  editors: {
    from: 'src/page/editors.ts',
    make: page =>
      editors(page)
        .map(([name, text]) => `- **${name}**${page.includes('zh-CN') ? '：' : ': '}${text}`)
        .join('\n'),
  },
  typora: { from: 'src/page/editors.ts', make: page => editors(page)[0][1] },
  obsidian: { from: 'src/page/editors.ts', make: page => editors(page)[1][1] },
  vscode: { from: 'src/page/editors.ts', make: page => editors(page)[2][1] },
  github: { from: 'src/page/examples.ts', make: () => jobFor('github') },
  gitlab: { from: 'src/page/examples.ts', make: () => jobFor('gitlab') },
  plugin: { from: 'docs/examples', make: () => exampleFile('index.js') },
  plugintest: { from: 'docs/examples', make: () => exampleFile('index.test.js') },
}

/** What the page of a server with a key shows. */
function jobFor(host) {
  const examples = examplesFor({ base: 'https://img.example.com', credential: 'key' })
  return ['```yaml', examples[host], '```'].join('\n')
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
    const bytes = toJsonSchema(config).properties?.maxBytes?.default
    const largest = LARGEST[type] ?? (bytes ? `${bytes / 2 ** 20} MiB (\`maxBytes\`)` : '–')
    return `| [\`${type}\`](${type}.md) | ${exists} | ${remove} | ${signs} | ${largest} | ${about.testedAgainst} |`
  })
  return [
    '| Type | Overwrite check | Removal | Private links | Largest file | Tested against |',
    '|---|---|---|---|---|---|',
    ...rows,
  ].join('\n')
}

/** Whether the targets of a provider's examples have `exists` and `remove`; an option of that name brings them. */
async function abilitiesOf({ about, config, open }) {
  const targets = await Promise.all(
    Object.entries(about.example).map(([name, options]) => open(config.parse(options), { name, warn() {} })),
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

function checkOf({ type, about }) {
  const command = `\`upload-server check ${type}/${Object.keys(about.example)[0]}\``
  const end = {
    yes: 'It then removes the image.',
    no: 'The image stays there, because this provider cannot remove files.',
  }[abilities.get(type).remove]
  const removal = end ?? `It then removes the image if \`remove\` is set.`
  return `Run ${command}. It uploads a test image, downloads it through its link and compares the two. ${removal}`
}

function optionsOf({ type, config, about }) {
  const template = '[key template](../reference/file-names.md)'
  return `${options(config)}\n\n${describeKeys(type, about.family, template)}`
}

function describeKeys(type, family, template) {
  if (['command', 'http'].includes(type))
    return `The receiver chooses where a file is stored. Placeholders pass it the object key, which the ${template} makes, or its last segment.`
  if (['host', 'other'].includes(family))
    return `The provider's server chooses where a file is stored. It receives the last segment of the object key, which the ${template} makes, as the file name.`
  return `The object key, which the ${template} makes, is the path of the file at the destination. \`{path}\` in the template is the folder that the request asks for.`
}

function options(schema) {
  return tableOf(rowsOf(toJsonSchema(schema), ''))
}

function tableOf(rows) {
  return ['| Option | Type | Default | Description |', '|---|---|---|---|', ...rows].join('\n')
}

/** A row for each option, those of sections and of lists included. */
function rowsOf({ properties = {}, required = [] }, path) {
  return Object.entries(properties).flatMap(([name, member]) => {
    const full = path ? `${path}.${name}` : name
    if (member.properties) return rowsOf(member, full)
    const standard = member.default === undefined ? '' : `\`${JSON.stringify(member.default)}\``
    const isNeeded = path === '' && required.includes(name)
    const row = `| \`${full}\` | ${typeOf(member)} | ${isNeeded ? 'required' : standard} | ${meaningOf(member)} |`
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
  // A URL is an example here, not a link.
  return description
    .replaceAll(/"(https?:[^\s"<|]+)"/g, '`$1`')
    .replaceAll('<', '&lt;')
    .replaceAll('|', '\\|')
}

/** What a page begins with that nobody has written yet. */
/** The skeleton of every page; its author adds what the destination is, its credentials and its limits. */
function newPage(type) {
  const part = name => `<!-- generated: ${name} -->\n<!-- /generated -->`
  return `# \`${type}\`\n\n## Configuration\n\n${part('example')}\n\n## Check\n\n${part('check')}\n\n## Options\n\n${part('options')}\n`
}

function fill(path, text) {
  return text.replace(
    /<!-- generated: (\w+).*-->\n[\s\S]*?<!-- \/generated -->/g,
    (_, name) =>
      `<!-- generated: ${name}, from ${PARTS[name].from}, by "npm run generate" -->\n\n${PARTS[name].make(path)}\n\n<!-- /generated -->`,
  )
}

const written = ['docs', ...readdirSync('docs').map(name => join('docs', name))]
  .filter(path => statSync(path).isDirectory())
  .flatMap(folder => readdirSync(folder).map(name => join(folder, name)))
  .filter(path => path.endsWith('.md'))
const pages = new Set([
  'README.md',
  'README.zh-CN.md',
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
