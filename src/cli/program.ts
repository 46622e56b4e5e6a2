import { suggest } from '../config/suggest.ts'
import { readVersion } from '../package.ts'
import { Argument, Command, InvalidArgumentError, Option } from '../packages/commander.ts'
import { COMMANDS } from './commands.ts'
import {
  type Call,
  type Command as Described,
  type Flag,
  type Flags,
  showFlag,
  spell,
  type Typed,
  UsageError,
} from './define.ts'
import { EXIT } from './exit-code.ts'
import { quote, type Terminal } from './terminal.ts'

/** Column of the remarks on examples, and longest line. */
const [REMARK_COLUMN, WIDTH] = [43, 120]

const NAME = 'upload-server'

const NOTES = `
Get started:
  upload-server init                         create a configuration
  upload-server                              start the server
  upload-server upload image.png             upload a file without a server

"upload-server" without a command starts the server and accepts the options of "serve" (upload-server serve --help), such as:
  upload-server --config blog.json --host 0.0.0.0 --port 8080

Exit codes: 0 success, 1 failure. Errors are printed on standard error.`

/**
 * Makes the parser of all commands from their descriptions.
 *
 * @param onCall receives the command line. Instead, parsing throws a CommanderError after it has printed the error or the help
 */
export function createProgram(terminal: Terminal, onCall: (call: Call) => void): Command {
  const program = new Command(NAME)
    .description(
      'Accepts files over HTTP like PicGo and PicList, stores them at any destination, and returns their links.',
    )
    .version(readVersion())
    .configureOutput({
      writeOut: text => terminal.print(text.replace(/\n$/, '')),
      // An error repeats the command line, in which URLs have passwords.
      writeErr: text => terminal.note(text.replace(/\/\/[^'/]*@/g, '//').replace(/\n$/, '')),
    })
    .exitOverride()
    .enablePositionalOptions() // Options after the name of a command belong to it.
    .addHelpText('after', NOTES)
    .showHelpAfterError(`Try: ${NAME} --help`)
  for (const one of COMMANDS) addCommand(program, one, terminal, onCall)
  return program
}

function addCommand(
  parent: Command,
  described: Described,
  terminal: Terminal,
  onCall: (call: Call) => void,
): void {
  const { name, aliases = [], about, arg, flags = {}, commands = [], isDefault = false, load } = described
  const command = parent
    .command(name, { isDefault })
    .aliases(aliases)
    .description(about)
    .addHelpText('after', textAfter(described))
    .showHelpAfterError(`Try: ${pathOf(parent)}${isDefault ? '' : ` ${name}`} --help`)
    .exitOverride(error => {
      if (error.exitCode !== 0) error.exitCode = usageCodeOf(described)
      throw error
    })
  if (arg) {
    const argument = new Argument(arg.spelling, arg.about)
    command.addArgument(arg.choices ? argument.choices(arg.choices) : argument)
  }
  const typed: Typed[] = []
  for (const [key, flag] of Object.entries(flags)) {
    const option = toOption(key, flag)
    command.addOption(option).on(`option:${option.name()}`, text => typed.push([key, text ?? undefined]))
  }
  if (commands.length > 0) command.enablePositionalOptions()
  for (const one of commands) addCommand(command, one, terminal, onCall)
  if (load === undefined) return
  // Misspelt commands arrive here as arguments.
  const mayBeMisspelt = isDefault || commands.length > 0
  command.allowExcessArguments(mayBeMisspelt).action(() => {
    if (mayBeMisspelt && command.args.length > 0)
      command.error(describeStray(command.args, isDefault ? parent : command, terminal))
    onCall({ command: described, words: command.args, options: command.opts(), typed })
    const fault = findMisplaced(parent, name) ?? findFault(flags, command)
    if (fault !== undefined) throw new UsageError(fault)
  })
}

function toOption(key: string, flag: Flag): Option {
  const { value, env, group, isRepeatable, isOnce, default: standard } = flag
  const option = new Option(showFlag(key, flag), flag.about)
  if (value?.choices) option.choices(value.choices)
  else if (value)
    option.argParser((text: string, before: unknown) => {
      if (isOnce && before !== undefined) throw new InvalidArgumentError('Must be given only once.')
      const one = readValue(flag, text)
      return isRepeatable ? [...((before as unknown[] | undefined) ?? []), one] : one
    })
  if (standard !== undefined) option.default(readValue(flag, standard), value?.read ? standard : undefined)
  if (env !== undefined) option.env(env)
  return group === undefined ? option : option.helpGroup(`${group}:`)
}

function readValue({ value }: Flag, text: string): unknown {
  const read = value?.read ? value.read(text) : text
  if (read === undefined) throw new InvalidArgumentError(`Must be ${value?.must}.`)
  return read
}

/**
 * The contradiction between flags. Not by `conflicts` of commander: it has no counterpart for `needs`, and an empty variable, which
 * CI systems set for a missing secret, would count as given.
 */
function findFault(flags: Flags, command: Command): string | undefined {
  const isGiven = (name: string) =>
    ['cli', 'env'].includes(command.getOptionValueSource(name) ?? '') && command.getOptionValue(name) !== ''
  const nameOf = (name: string) => spell(name, flags[name] ?? { about: '' })
  for (const [name, { needs = [], excludes = [] }] of Object.entries(flags)) {
    if (!isGiven(name)) continue
    const needed = needs
      .map(nameOf)
      .join(', ')
      .replace(/, ([^,]*)$/, ' or $1')
    if (needed !== '' && !needs.some(isGiven)) return `${nameOf(name)} requires ${needed}.`
    const other = excludes.find(isGiven)
    const variable = other && flags[other]?.env
    if (other !== undefined)
      return `${nameOf(name)} cannot be used with ${nameOf(other)}${variable ? ` or ${variable}` : ''}.`
  }
  return undefined
}

/** Options before the name of a command below another one would be ignored. */
function findMisplaced(parent: Command, name: string): string | undefined {
  const given = parent.options.find(one => parent.getOptionValueSource(one.attributeName()) === 'cli')
  return given && `${given.long} must be written after "${name}".`
}

/** A command that does not exist. No command has a dot or a slash, but files and URLs have. */
function describeStray(words: readonly string[], parent: Command, { platform }: Terminal): string {
  const [stray = ''] = words
  if (!parent.parent && /[./\\]/.test(stray)) {
    const line = words.map(word => quote(word, platform)).join(' ')
    return `error: '${stray}' is not a command. To upload it: upload-server upload ${line}`
  }
  const names = parent.commands.map(one => one.name())
  return `error: unknown command '${stray}'${suggest(stray, names)}`
}

/** The code for wrong usage. Only a command that lists it tells it from a failure. */
export const usageCodeOf = ({ exitCodes }: Pick<Described, 'exitCodes'>): number =>
  exitCodes?.[EXIT.usage] === undefined ? EXIT.failed : EXIT.usage

function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name()
}

/** What the help shows after the options. */
function textAfter({ examples, notes, exitCodes = {} }: Described): string {
  const lines = examples.map(([line, remark = '']) =>
    `  ${line.padEnd(REMARK_COLUMN - 2)}  ${remark}`.trimEnd(),
  )
  const codes = Object.entries(exitCodes).map(([code, meaning]) => `${code} ${meaning}`)
  const codeLine = codes.length > 0 ? `Exit codes: ${codes.join(', ')}.` : ''
  const wrapped = codeLine.replaceAll(new RegExp(`(.{1,${WIDTH}})(?: |$)`, 'g'), '$1\n').trimEnd()
  return [['', 'Examples:', ...lines].join('\n'), notes, wrapped].filter(Boolean).join('\n\n')
}
