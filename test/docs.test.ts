import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { destinationSchema } from '../src/config/destination.ts'
import { loadConfig } from '../src/config/load.ts'
import { configSchema } from '../src/config/schema.ts'
import { makeDirectory } from './helpers/directory.ts'
import { DOCUMENTS, FENCED, inFolder } from './helpers/documents.ts'

interface Option {
  type?: string
  description?: string
  default?: unknown
  enum?: unknown[]
  properties?: Record<string, Option>
  items?: Option | false
  anyOf?: Option[]
}

const toOption = (schema: z.ZodType) =>
  z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Option

function typeOf(option: Option): string {
  if (option.enum) return option.enum.map(value => `\`${value}\``).join(', ')
  if (option.anyOf) return [...new Set(option.anyOf.map(typeOf))].join(' or ')
  if (option.type === 'array') return `list of ${option.items ? typeOf(option.items) : 'anything'}`
  if (option.type === 'integer') return 'number'
  return option.type ?? 'anything'
}

function rowsOf(option: Option, path: string): string[] {
  return Object.entries(option.properties ?? {}).flatMap(([name, member]) => {
    const full = path ? `${path}.${name}` : name
    if (member.properties) return rowsOf(member, full)
    const rows = [
      `| \`${full}\` | ${typeOf(member)} | ${showDefault(member.default)} | ${meaningOf(member)} |`,
    ]
    const inner = member.items
    if (inner !== false && inner?.properties) rows.push(...rowsOf(inner, `${full}[]`))
    return rows
  })
}

/** Markdown takes `<type>` for a tag and leaves it out. */
function meaningOf({ description = '' }: Option): string {
  return description.replaceAll('<', '&lt;')
}

function showDefault(value: unknown): string {
  return value === undefined ? '' : `\`${JSON.stringify(value)}\``
}

const HEAD = '| Option | Type | Default | Meaning |\n|---|---|---|---|'

const PLACEHOLDERS = `| Placeholder | Meaning |
|---|---|
| \`{Y}\` \`{y}\` \`{m}\` \`{d}\` \`{h}\` \`{i}\` \`{s}\` \`{ms}\` | year with four and with two digits, month, day, hour, minute, second, milliseconds; the server's local time |
| \`{timestamp}\` \`{timestampS}\` | milliseconds and seconds since 1970 |
| \`{filename}\` \`{extname}\` | the cleaned name without its extension, and the extension with its dot |
| \`{md5}\` \`{md5-16}\` \`{sha1}\` \`{sha1-N}\` \`{sha256}\` \`{sha256-N}\` | hash of the content, or its first digits |
| \`{uuid}\` \`{ulid}\` \`{str-N}\` | something new each time |
| \`{localFolder:N}\` | the last N folders of a file that was named by its path |`

function page(): string {
  const general = toOption(configSchema)
  const sections = Object.entries(general.properties ?? {}).filter(([name]) => name !== '$schema')
  const text = sections
    .filter(([, section]) => section.properties)
    .map(([name, section]) => {
      return `### \`${name}\`\n\n${meaningOf(section)}\n\n${HEAD}\n${rowsOf(section, name).join('\n')}\n`
    })
  const single = sections.filter(([, section]) => !section.properties)
  const singleRows = rowsOf({ properties: Object.fromEntries(single) }, '')
  return `# Configuration

One JSON file; comments and trailing commas are allowed. It is looked for in this order: \`--config\`,
\`UPLOAD_SERVER_CONFIG\`, \`./upload-server.json\`, and \`config.json\` in the user's configuration folder
(\`$XDG_CONFIG_HOME/upload-server\`, \`~/Library/Application Support/upload-server\`, \`%APPDATA%\\upload-server\`). A file of
PicGo or PicList is read as it is; \`upload-server config import FILE\` shows it as one of ours. Without a file, uploads go
to a folder in the user's data folder and are served under \`/files/\`.

Every mistake is reported at once, with its path: \`upload-server config validate\`. \`"$schema": "./config.schema.json"\`
lets editors check and complete the file.

A flag wins over the environment, that over \`.env\` (in the working directory, then beside the file), that over the file.
\`UPLOAD_SERVER_HOST\`, \`_PORT\`, \`_KEY\`, \`_PUBLIC_URL\` and \`_LOG_LEVEL\` are short names; every other setting is its path
with double underscores: \`UPLOAD_SERVER__LIMITS__FILESIZE=20MB\`. In the file, \`\${NAME}\` takes a variable and
\`\${file:/run/secrets/key}\` the text of a file, in any string; \`$\${\` is a literal \`\${\`. Relative paths start at the file's
folder, \`~/\` is the home folder.

A running server takes a changed file by itself, or at SIGHUP only with \`server.watch: false\` or \`--no-watch\`. It watches
every file it was read from, \`.env\` and \`\${file:…}\` included. Requests that run end with what they began with; keys,
destinations, limits, hooks and the log level hold for new ones. A file with mistakes changes nothing: the log names them.
Host, port and store take effect at the next start, and the log says so.

Sizes are bytes or strings such as \`"100MB"\` (KB is 1024 bytes); times are milliseconds.

## Settings

${HEAD}
${singleRows.join('\n')}

${text.join('\n')}
## Options of every destination

Beside those of its provider, see [destinations](destinations/).

${HEAD}
${rowsOf(toOption(destinationSchema), '').join('\n')}

## Key templates

A key is the path of a file at its destination. The default holds a hash of the content, so that equal names meet only
with equal bytes.

${PLACEHOLDERS}
`
}

it('the configuration reference is current (npx vitest run test/docs.test.ts -u writes it)', async () => {
  await expect(page()).toMatchFileSnapshot('../docs/configuration.md')
})

/** Every configuration on a page, with something for the variables it takes. */
function examplesOn(page: string): { text: string; env: Record<string, string> }[] {
  const blocks = readFileSync(page, 'utf8').matchAll(/^```json.*\n([\s\S]*?)^```$/gm)
  return [...blocks].map(([, text = '']) => {
    const names = [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => name)
    return { text, env: Object.fromEntries(names.map(name => [name, sampleOf(name)])) }
  })
}

/** Keys of Azure are Base64, its tokens the query of a URL. */
function sampleOf(name: string): string {
  if (name === 'DATABASE_URL') return 'postgres://127.0.0.1/upload'
  return /SAS/.test(name) ? 'sv=2021-12-02&sig=x' : 'c2FtcGxl'.repeat(8)
}

it.each(inFolder('docs/destinations'))('%s has an example', page => {
  expect(examplesOn(page)).not.toEqual([])
})

const EXAMPLES = ['.', 'docs', 'docs/destinations']
  .flatMap(inFolder)
  .flatMap(page => examplesOn(page).map(example => ({ page, ...example })))

it.each(EXAMPLES)('$page holds a configuration that is valid: %#', async ({ page, text, env }) => {
  const cwd = await makeDirectory()
  const file = join(cwd, 'upload-server.json')
  await writeFile(file, text)
  await writeFile(join(cwd, 'key'), 'sample')
  const { destinations } = await loadConfig({ cwd, platform: 'linux', env: { HOME: cwd, ...env }, file })
  if (page.includes('destinations'))
    expect(destinations.map(({ type }) => type)).toContain(basename(page, '.md'))
})

/** What docs-commands.test.ts can't run, by the `by=` of a block: who does instead, or why nobody. */
const RUN_BY = new Map([
  ['clone', '.ci/run: it replaces the packages that these tests run with'],
  ['container', '.ci/container, which needs root and takes minutes'],
  ['bench', '.ci/run measures the quick rows; all of them take half an hour'],
  ['systemd', 'nobody: it takes a user session of systemd. test/service.test.ts verifies the unit'],
  ['launchd', 'nobody: it takes macOS. test/service.test.ts reads the file'],
  ['windows', 'nobody'],
])

/** `sh` is run by docs-commands.test.ts, `sh server` keeps running, `console` is compared, the shells are those of completion.test.ts. */
const KIND =
  /^(?:sh(?: server)?|(?:sh|bat) by=(?<by>\w+)|console|zsh|fish|json(?: file=[\w./-]+)?|yaml|text)$/

it.each(DOCUMENTS)('$file has no command that nobody runs', ({ file, blocks }) => {
  for (const { kind, code } of blocks) {
    const known = KIND.exec(kind)
    expect(known, `a block of the kind "${kind}":\n${code}`).not.toBeNull()
    const by = known?.groups?.['by']
    if (by !== undefined) expect([...RUN_BY.keys()]).toContain(by)
  }
  const prose = readFileSync(file, 'utf8').replace(FENCED, '')
  expect(prose.match(/(?<=\n\n) {4,}[^ -].*/g) ?? [], 'commands stand in blocks with their kind').toEqual([])
})
