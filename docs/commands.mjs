import { COMMANDS } from '../build/cli/commands.js'
import { showFlag, spell } from '../build/cli/define.js'

/** Markdown takes `<type>` for a tag. */
const inTable = text => text.replaceAll(/<(?=\w)/g, '&lt;').replaceAll('|', '\\|')

const code = text => `\`${text}\``
const ALL = COMMANDS.flatMap(one => [
  [one.name, one],
  ...(one.commands ?? []).map(below => [`${one.name} ${below.name}`, below]),
])

/** The rows that three commands or more have. They are shown once. */
const SHARED = findShared()

function findShared() {
  const rows = ALL.flatMap(([, { flags = {} }]) => Object.keys(flags).map(name => flagRow(name, flags)))
  return [...new Set(rows)].filter(one => rows.filter(row => row === one).length > 2)
}

/** A section for each command with a table of its options, for docs/reference/cli.md. */
export function describeCommands() {
  const shared = ['### Common options', ['| Option | Meaning |', '|---|---|', ...SHARED].join('\n')]
  return [...shared, ...ALL.map(([path, command]) => describe(path, command))].join('\n\n')
}

function describe(
  path,
  { about, aliases = [], arg, flags = {}, examples, notes, exitCodes = {}, commands = [] },
) {
  const also = aliases.length > 0 ? ` Also: ${aliases.map(code).join(', ')}.` : ''
  const below = commands.map(({ name }) => `[${code(`${path} ${name}`)}](#${path}-${name})`)
  const codes = Object.entries(exitCodes).map(([number, meaning]) => `${number} ${meaning}`)
  return [
    `### \`${path}\``,
    sentence(about) + also,
    ...(commands.length > 0 ? [`Commands: ${below.join(', ')}.`] : []),
    ...table(arg, flags),
    ...sharedOf(flags),
    ...(notes ? [inTable(notes.replaceAll('\n', ' '))] : []),
    ...(codes.length > 0 ? [`Exit codes: ${codes.join(', ')}.`] : []),
    block(examples.slice(0, 3).map(([line, remark]) => (remark ? `${line}  # ${remark}` : line))),
  ].join('\n\n')
}

function table(arg, flags) {
  const rows = arg ? [row(arg.spelling, arg.about, arg.choices)] : []
  let group
  for (const [name, flag] of Object.entries(flags)) {
    const own = flagRow(name, flags)
    if (SHARED.includes(own)) continue
    if (flag.group !== group) rows.push(`| **${flag.group}** | |`)
    group = flag.group
    rows.push(own)
  }
  return rows.length > 0 ? [['| Option | Meaning |', '|---|---|', ...rows].join('\n')] : []
}

function sharedOf(flags) {
  const names = Object.keys(flags).filter(name => SHARED.includes(flagRow(name, flags)))
  const spelled = names.map(name => code(spell(name, flags[name])))
  return names.length > 0 ? [`[Common options](#common-options): ${spelled.join(', ')}.`] : []
}

function flagRow(name, flags) {
  const flag = flags[name]
  const isTold = flag.default === undefined ? '' : ` (default: ${code(flag.default)})`
  const rules = [
    ...(flag.env ? [`Environment variable: ${code(flag.env)}`] : []),
    ...(flag.needs ? [`Requires ${code(spell(flag.needs, flags[flag.needs]))}`] : []),
    ...(flag.excludes ?? []).map(other => `Not with ${code(spell(other, flags[other]))}`),
  ]
  return row(showFlag(name, flag), [flag.about + isTold, ...rules].join('. '), flag.value?.choices)
}

function row(spelling, about, choices) {
  const among = choices ? `: ${choices.map(code).join(', ')}` : ''
  return `| ${code(spelling)} | ${inTable(about.replace(/$| \(default/, text => among + text))} |`
}

const block = lines => ['```text', ...lines, '```'].join('\n')
const sentence = text => `${text[0].toUpperCase()}${text.slice(1)}.`
