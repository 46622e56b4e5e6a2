import { suggest } from '../config/suggest.ts'
import { Argument, Command, InvalidArgumentError, Option } from '../packages/commander.ts'
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

/** Receives the command line. */
type OnCall = (call: Call) => void

/** The program without its commands. */
export interface ProgramText {
  readonly name: string
  readonly about: string
  readonly version: string
  readonly notes: string
}

/** Makes a parser of descriptions. Parsing calls `onCall`, or throws a CommanderError after it has printed the error or the help. */
export function createProgram(
  { name, about, version, notes }: ProgramText,
  commands: readonly Described[],
  terminal: Terminal,
  onCall: OnCall,
): Command {
  const program = new Command(name)
    .description(about)
    .version(version)
    .configureOutput({
      writeOut: text => terminal.print(text.replace(/\n$/, '')),
      writeErr: text => terminal.note(withoutLogins(text).replace(/\n$/, '')),
    })
    .exitOverride()
    .enablePositionalOptions() // Options after the name of a command belong to it.
    .addHelpText('after', notes)
    .showHelpAfterError(`Try: ${name} --help`)
  for (const one of commands) addCommand(program, one, terminal, onCall)
  return program
}

function addCommand(parent: Command, described: Described, terminal: Terminal, onCall: OnCall): void {
  const { name, aliases = [], about, arg, flags = {}, commands = [], isDefault = false, load } = described
  const command = parent
    .command(name, { isDefault, hidden: described.isHidden === true })
    .aliases(aliases)
    .description(about)
    .addHelpText('after', textAfter(described))
    .showHelpAfterError(`Try: ${pathOf(parent)}${isDefault ? '' : ` ${name}`} --help`)
    .exitOverride(error => {
      if (error.exitCode !== 0) error.exitCode = usageCodeOf(described)
      throw error
    })
  if (arg) command.addArgument(toArgument(arg))
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
    const [stray] = command.args
    if (isDefault && stray !== undefined && /[./\\]/.test(stray))
      command.error(describeFile(command.args, terminal))
    if (mayBeMisspelt && stray !== undefined)
      command.error(describeStray(stray, isDefault ? parent : command))
    onCall({ command: described, words: command.args, options: command.opts(), typed })
    const fault = findMisplaced(parent, name) ?? findFault(flags, command)
    if (fault !== undefined) throw new UsageError(fault)
  })
}

function toArgument({ spelling, about, choices }: NonNullable<Described['arg']>): Argument {
  const argument = new Argument(spelling, about)
  return choices ? argument.choices(choices) : argument
}

function toOption(key: string, flag: Flag): Option {
  const { value, env, group, isRepeatable, isOnce } = flag
  const option = new Option(showFlag(key, flag), flag.about)
  if (value?.choices) option.choices(value.choices)
  else if (value) {
    option.argParser((text: string, before: unknown) => {
      if (isOnce && before !== undefined) throw new InvalidArgumentError('Must be given only once.')
      const one = readValue(flag, text)
      return isRepeatable ? [...((before as unknown[] | undefined) ?? []), one] : one
    })
  }
  if (flag.default !== undefined)
    option.default(readValue(flag, flag.default), value?.read ? flag.default : undefined)
  if (env !== undefined) option.env(env)
  return group === undefined ? option : option.helpGroup(`${group}:`)
}

function readValue({ value }: Flag, text: string): unknown {
  try {
    return value?.read ? value.read(text) : text
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message)
  }
}

/**
 * The contradiction between flags. Not by `conflicts` of commander: it has no counterpart for `needs`, and an empty variable, which
 * CI systems set for a missing secret, would count as given.
 */
function findFault(flags: Flags, command: Command): string | undefined {
  const isGiven = (name: string) =>
    ['cli', 'env'].includes(command.getOptionValueSource(name) ?? '') && command.getOptionValue(name) !== ''
  const nameOf = (name: string) => spell(name, flags[name] ?? { about: '' })
  for (const [name, { needs, excludes = [], findFault }] of Object.entries(flags).filter(([name]) =>
    isGiven(name),
  )) {
    if (needs !== undefined && !isGiven(needs)) return `${nameOf(name)} requires ${nameOf(needs)}.`
    const other = excludes.find(isGiven)
    if (other !== undefined) {
      const variable = flags[other]?.env
      const also = variable === undefined ? '' : ` or ${variable}`
      return `${nameOf(name)} cannot be used with ${nameOf(other)}${also}.`
    }
    const fault = findFault?.(command.opts())
    if (fault !== undefined) return fault
  }
  return undefined
}

/** Options before the name of a command below another one would be ignored. */
function findMisplaced(parent: Command, name: string): string | undefined {
  const given = parent.options.find(one => parent.getOptionValueSource(one.attributeName()) === 'cli')
  return given && `${given.long} must be written after "${name}".`
}

/** No command has a dot or a slash, but files and URLs have. */
function describeFile(words: readonly string[], { platform }: Terminal): string {
  const line = words.map(word => quote(word, platform)).join(' ')
  return `error: '${words[0]}' is not a command. To upload it: upload-server upload ${line}`
}

function describeStray(stray: string, parent: Command): string {
  const shown = parent.createHelp().visibleCommands(parent)
  const names = shown.map(one => one.name()).filter(name => name !== 'help')
  return `error: unknown command '${stray}'${suggest(stray, names)}`
}

/** The code for wrong usage. Only a command that lists it tells it from a failure. */
export const usageCodeOf = ({ exitCodes }: Pick<Described, 'exitCodes'>): number =>
  exitCodes?.[EXIT.usage] === undefined ? EXIT.failed : EXIT.usage

function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name()
}

/** What the help shows after the options. */
function textAfter({ examples, notes, exitCodes }: Described): string {
  const lines = examples.map(([line, remark]) =>
    remark === undefined ? `  ${line}` : `  ${line.padEnd(REMARK_COLUMN - 2)}  ${remark}`,
  )
  const codes = Object.entries(exitCodes ?? {}).map(([code, meaning]) => `${code} ${meaning}`)
  return [
    ...(lines.length > 0 ? [['', 'Examples:', ...lines].join('\n')] : []),
    ...(notes === undefined ? [] : [notes]),
    ...(codes.length > 0 ? [wrap(`Exit codes: ${codes.join(', ')}.`)] : []),
  ].join('\n\n')
}

function wrap(text: string): string {
  return text.replaceAll(new RegExp(`(.{1,${WIDTH}})(?: |$)`, 'g'), '$1\n').trimEnd()
}

/** Removes the passwords of URLs from the command line that an error message repeats. */
function withoutLogins(text: string): string {
  return text
    .split("'")
    .map(part => {
      const [begin, end] = [part.indexOf('//') + 2, part.lastIndexOf('@') + 1]
      return begin > 1 && end > begin ? part.slice(0, begin) + part.slice(end) : part
    })
    .join("'")
}
