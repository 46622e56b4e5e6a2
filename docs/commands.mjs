import { COMMANDS } from '../build/cli/commands.js'
import { showFlag, spell } from '../build/cli/define.js'

/** Markdown takes `<type>` for a tag. */
const asText = text => text.replaceAll(/<(?=\w)/g, '&lt;')

const code = text => `\`${text}\``
const anchorOf = path => `#${path.replaceAll(' ', '-')}`

const ALL = COMMANDS.flatMap(one => [
  [one.name, one],
  ...(one.commands ?? []).map(below => [`${one.name} ${below.name}`, below]),
])

/** The option that most commands have. It is shown once. */
const CONFIG = flagRow('config', COMMANDS.find(({ name }) => name === 'serve').flags)

/** A section for each command with a list of its options, for docs/reference/cli.md. An option that an earlier command has is only named. */
export function describeCommands() {
  const shown = new Map()
  const without = ALL.filter(([, { load, flags = {} }]) => load && !('config' in flags))
  const all = `Every command but ${without.map(([path]) => code(path)).join(', ')} has this option:`
  return [all, CONFIG, ...ALL.map(([path, command]) => describe(path, command, shown))].join('\n\n')
}

function describe(
  path,
  { about, aliases = [], arg, flags = {}, examples, notes, exitCodes = {}, commands = [] },
  shown,
) {
  const also = aliases.length > 0 ? ` Also: ${aliases.map(code).join(', ')}.` : ''
  const below = commands.map(({ name }) => `[${code(`${path} ${name}`)}](${anchorOf(`${path} ${name}`)})`)
  const codes = Object.entries(exitCodes).map(([number, meaning]) => `${number} ${meaning}`)
  const rows = Object.entries(flags)
    .map(([name, flag]) => ({ name, flag, text: flagRow(name, flags) }))
    .filter(({ text }) => text !== CONFIG)
  const own = rows.filter(({ text }) => !shown.has(text))
  const others = rows.filter(({ text }) => shown.has(text)).map(row => ({ ...row, of: shown.get(row.text) }))
  for (const { text } of own) shown.set(text, path)
  return [
    `### \`${path}\``,
    sentence(about) + also,
    ...(commands.length > 0 ? [`Commands: ${below.join(', ')}.`] : []),
    ...list(arg, own),
    ...(others.length > 0 ? [asFor(others)] : []),
    ...(notes ? [asText(notes.replaceAll('\n', ' '))] : []),
    ...(codes.length > 0 ? [`Exit codes: ${codes.join(', ')}.`] : []),
    ...block(examples.filter(([line]) => shows(line, path)).slice(0, 2)),
  ].join('\n\n')
}

/** Whether an example shows more than the name of the command and the option of all of them. */
const shows = (line, path) => !new RegExp(`^upload-server ${path}(?: --config \\S+| --json)?$`).test(line)

/** A list for each group. The argument is the first item, or a list of its own above groups. */
function list(arg, own) {
  const first = arg ? [row(arg.spelling, arg.about, arg.choices)] : []
  const rowsOf = group => own.filter(({ flag }) => flag.group === group).map(({ text }) => text)
  const named = [...new Set(own.map(({ flag }) => flag.group))].filter(group => group !== undefined)
  const lists = [
    [...first, ...rowsOf(undefined)],
    ...named.map(group => [`**${group}**\n`, ...rowsOf(group)]),
  ]
  return lists.filter(rows => rows.length > 0).map(rows => rows.join('\n'))
}

function asFor(others) {
  const lists = [...new Set(others.map(({ of }) => of))].map(path => {
    const names = others.filter(({ of }) => of === path).map(({ name, flag }) => code(spell(name, flag)))
    return `${names.join(', ')} as for [${code(path)}](${anchorOf(path)})`
  })
  return `Also ${lists.join('; ')}.`
}

function flagRow(name, flags) {
  const flag = flags[name]
  const isTold = flag.default === undefined ? '' : ` (default: ${code(flag.default)})`
  const listed = names =>
    names
      .map(other => code(spell(other, flags[other])))
      .join(', ')
      .replace(/, ([^,]*)$/, ' or $1')
  const rules = [
    ...(flag.env ? [`Environment variable: ${code(flag.env)}`] : []),
    ...(flag.needs ? [`Requires ${listed(flag.needs)}`] : []),
    ...(flag.excludes ? [`Not with ${listed(flag.excludes)}`] : []),
  ]
  return row(showFlag(name, flag), [flag.about + isTold, ...rules].join('. '), flag.value?.choices)
}

function row(spelling, about, choices) {
  const among = choices ? `: ${choices.map(code).join(', ')}` : ''
  return `- ${code(spelling)}: ${asText(about.replace(/$| \(default/, text => among + text))}`
}

function block(examples) {
  const lines = examples.map(([line, remark]) => (remark ? `${line}  # ${remark}` : line))
  return lines.length > 0 ? [['```text', ...lines, '```'].join('\n')] : []
}
const sentence = text => `${text[0].toUpperCase()}${text.slice(1)}.`

/**
 * The inputs of action.yml that are options of `upload`, in order: the name of the flag, what the action calls it, its default,
 * and what the description says in addition or instead. `isPassed` is false for those that the script of the action passes in its own way.
 */
const INPUTS = [
  ['server', { about: 'URL of the upload server. Required unless "config" is set', isPassed: false }],
  ['destination'],
  ['path'],
  ['expires'],
  ['keepFolders'],
  ['stripComponents'],
  [
    'config',
    {
      about:
        'configuration file to use instead of a server. It may run code, so never use one that a pull request can change',
      isPassed: false,
    },
  ],
  ['retryMaxTime', { input: 'timeout', isPassed: false }],
  ['wait', { isPassed: false }],
  ['allowEmpty'],
  ['softFail'],
  ['githubSummary', { input: 'summary', about: 'show the images in the job summary', standard: 'true' }],
  ['junit'],
  ['comment', { more: 'Needs "permissions: pull-requests: write"', isPassed: false }],
  ['pr', { more: 'Needed by jobs that do not belong to it, such as those of workflow_run', isPassed: false }],
  ['commentName', { more: 'Here, also the step and the values of the matrix are in it', isPassed: false }],
  ['commentTitle', { standard: 'Pictures', isPassed: false }],
  ['compare'],
  ['baseline'],
  ['threshold'],
  ['masks'],
  ['failOn'],
  ['status', { more: 'Needs "permissions: statuses: write"' }],
  ['report'],
  ['shard'],
].map(([name, { input, about, standard, more, isPassed = true } = {}]) => {
  const flag = COMMANDS.find(one => one.name === 'upload').flags[name]
  const option = spell(name, flag)
  const text = [sentence(about ?? flag.about), ...(more ? [`${more}.`] : [])].join(' ')
  return {
    ...{ option, input: input ?? option.slice(2), isSwitch: flag.value === undefined, isPassed },
    standard: standard ?? flag.default ?? (flag.value ? '' : 'false'),
    text,
  }
})

/** In the action, an option is called as its input. */
const withInputs = text =>
  text.replace(/--[\w-]+/g, option => {
    const found = INPUTS.find(one => one.option === option)
    return found ? `"${found.input}"` : option
  })

const variableOf = ({ input }) => `INPUT_${input.toUpperCase().replaceAll('-', '_')}`
const inYaml = text => `'${text.replaceAll("'", "''")}'`

/** The generated parts of action.yml. */
export const ACTION = {
  inputs: INPUTS.map(
    ({ input, text, standard }) =>
      `  ${input}:\n    description: ${inYaml(withInputs(text))}\n    default: ${inYaml(standard)}`,
  ).join('\n'),
  variables: INPUTS.map(one => `        ${variableOf(one)}: \${{ inputs.${one.input} }}`).join('\n'),
  options: INPUTS.filter(({ isPassed }) => isPassed)
    .map(one => `        ${one.isSwitch ? 'switch' : 'value'} ${one.option} "$${variableOf(one)}"`)
    .join('\n'),
}
