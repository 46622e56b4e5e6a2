import { COMMANDS } from '../build/cli/commands.js'
import { showFlag, spell } from '../build/cli/define.js'

/** A section for each command with a table of its options, for docs/reference/cli.md. */
export function describeCommands() {
  return COMMANDS.flatMap(one => [
    [one.name, one],
    ...(one.commands ?? []).map(below => [`${one.name} ${below.name}`, below]),
  ])
    .map(([path, command]) => describe(path, command))
    .join('\n\n')
}

function describe(
  path,
  { about, aliases = [], arg, flags = {}, examples, notes, exitCodes = {}, commands = [] },
) {
  const words = [
    'upload-server',
    path,
    ...(Object.keys(flags).length > 0 ? ['[options]'] : []),
    ...(arg ? [arg.spelling] : []),
  ]
  const also = aliases.length > 0 ? ` Also: ${aliases.map(code).join(', ')}.` : ''
  const below = commands.map(({ name }) => `[${code(`${path} ${name}`)}](#${path}-${name})`)
  const codes = Object.entries(exitCodes).map(([number, meaning]) => `${number} ${meaning}`)
  return [
    `### \`${path}\``,
    sentence(about) + also,
    ...(commands.length > 0 ? [`Commands: ${below.join(', ')}.`] : []),
    block([words.join(' ')]),
    ...(arg || Object.keys(flags).length > 0 ? [table(arg, flags)] : []),
    ...(notes ? [inTable(notes.replaceAll('\n', ' '))] : []),
    ...(codes.length > 0 ? [`Exit codes: ${codes.join(', ')}.`] : []),
    block(examples.map(([line, remark]) => (remark ? `${line}  # ${remark}` : line))),
  ].join('\n\n')
}

function table(arg, flags) {
  const rows = arg ? [row(arg.spelling, arg.about, arg.choices)] : []
  let group
  for (const [name, flag] of Object.entries(flags)) {
    if (flag.group !== group) rows.push(`| **${flag.group}** | |`)
    group = flag.group
    const isTold = flag.default === undefined ? '' : ` (default: ${code(flag.default)})`
    const rules = [
      ...(flag.env ? [`Environment variable: ${code(flag.env)}`] : []),
      ...(flag.needs ? [`Requires ${code(spell(flag.needs, flags[flag.needs]))}`] : []),
      ...(flag.excludes ?? []).map(other => `Not with ${code(spell(other, flags[other]))}`),
    ]
    rows.push(row(showFlag(name, flag), [flag.about + isTold, ...rules].join('. '), flag.value?.choices))
  }
  return ['| Option | Meaning |', '|---|---|', ...rows].join('\n')
}

function row(spelling, about, choices) {
  const among = choices ? `: ${choices.map(code).join(', ')}` : ''
  return `| ${code(spelling)} | ${inTable(about.replace(/$| \(default/, text => among + text))} |`
}

/** Markdown takes `<type>` for a tag. */
const inTable = text => text.replaceAll(/<(?=\w)/g, '&lt;').replaceAll('|', '\\|')

const code = text => `\`${text}\``
const block = lines => ['```text', ...lines, '```'].join('\n')
const sentence = text => `${text[0].toUpperCase()}${text.slice(1)}.`
