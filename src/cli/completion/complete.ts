import { glance } from '../../config/load.ts'
import { type Command, type Flag, type Offers, spell } from '../define.ts'
import type { Terminal } from '../terminal.ts'

// By hand: the library with an adapter for commander (@bomb.sh/tab 0.0.22) never lets the shell complete file names, and takes
// no words that have to be read first, such as the destinations of a configuration.

/** A word that may come next, and its description. */
type Candidate = readonly [word: string, meaning: string]

/** Printed instead of the names of files or folders, which the shell knows. */
const BY_SHELL = { file: ':files', folder: ':folders' } as const

/** Words offered wherever a command may be named. */
const HELP: Pick<Command, 'name' | 'about'> = { name: 'help', about: 'display help for command' }

/**
 * `upload-server complete -- WORDS`, which the completion scripts run. Prints a line for each word that may come next, with its
 * description after a tab, and `:files` or `:folders` if such a name may.
 *
 * @param words the words after `upload-server`; the last one is being typed
 */
export async function complete(
  commands: readonly Command[],
  words: readonly string[],
  terminal: Terminal,
): Promise<number> {
  const { command, flag, config } = readWords(commands, words.slice(0, -1))
  const typed = words.at(-1) ?? ''
  const offer = ({ choices, offers }: { choices?: readonly string[]; offers?: Offers }) =>
    choices ?? wordsOf(offers, config, terminal)
  const candidates: readonly Candidate[] = flag
    ? withoutMeaning(await offer(flag.value ?? {}))
    : typed.startsWith('-')
      ? flagsOf(command)
      : [...commandsBelow(command), ...withoutMeaning(await offer(command.arg ?? {}))]
  for (const [word, meaning] of candidates) {
    if (word.startsWith(':')) terminal.print(word)
    else if (word.startsWith(typed)) terminal.print(`${word}\t${meaning}`)
  }
  return 0
}

/** A part of a description: for the program itself, its commands, and the flags of the default command. */
type Place = Pick<Command, 'flags' | 'commands' | 'arg'>

interface TypedLine {
  readonly command: Place
  /** The flag whose value comes next. */
  readonly flag: Flag | undefined
  /** Value of --config. */
  readonly config: string | undefined
}

function readWords(commands: readonly Command[], words: readonly string[]): TypedLine {
  let command: Place = { commands, flags: commands.find(one => one.isDefault)?.flags ?? {} }
  let flag: readonly [name: string, flag: Flag] | undefined
  let config: string | undefined
  for (const word of words) {
    if (flag) {
      if (flag[0] === 'config') config = word
      flag = undefined
    } else if (word.startsWith('-')) {
      const own = Object.entries(command.flags ?? {})
      flag = own.find(([name, one]) => one.value && [one.short, spell(name, one)].includes(word))
    } else {
      command = command.commands?.find(one => [one.name, ...(one.aliases ?? [])].includes(word)) ?? command
    }
  }
  return { command, flag: flag?.[1], config }
}

function flagsOf({ flags = {} }: Place): Candidate[] {
  const own = Object.entries(flags).map(([name, flag]): Candidate => [spell(name, flag), flag.about])
  return [...own, ['--help', 'display help']]
}

const commandsBelow = ({ commands = [] }: Place): Candidate[] =>
  commands.length === 0 ? [] : [...commands, HELP].map(({ name, about }) => [name, about])

const withoutMeaning = (words: readonly string[]): Candidate[] => [...new Set(words)].map(word => [word, ''])

async function wordsOf(
  offers: Offers | undefined,
  config: string | undefined,
  terminal: Terminal,
): Promise<readonly string[]> {
  if (offers === undefined) return []
  if (typeof offers === 'function') return offers()
  if (offers === 'file' || offers === 'folder') return [BY_SHELL[offers]]
  const ids = await idsOf(config, terminal)
  if (offers === 'destination') return ids
  return ids.map(id => id.replace(offers === 'picbed' ? /\/.*/s : /^[^/]*\//, ''))
}

/** The destinations of the configuration, if it can be read. Completion runs no code of it and prints no errors. */
async function idsOf(file: string | undefined, terminal: Terminal): Promise<string[]> {
  return glance({ ...terminal, file }).then(
    ({ ids }) => ids,
    () => [],
  )
}
