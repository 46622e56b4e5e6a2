import { glance } from '../../config/load.ts'
import { COMMANDS } from '../commands.ts'
import { type Command, type Flag, spell, type Value } from '../define.ts'
import type { Terminal } from '../terminal.ts'

// By hand: the library with an adapter for commander (@bomb.sh/tab 0.0.22) never lets the shell complete file names, and takes
// no words that have to be read first, such as the destinations of a configuration.

/** A word that may come next, and its description. */
type Candidate = readonly [word: string, meaning: string]

/** Offered wherever a command may be named, and with the flags of each. */
const HELP: Candidate = ['help', 'display help for command']
const HELP_FLAG: Candidate = ['--help', 'display help']

/**
 * `upload-server complete -- WORDS`, which the completion scripts run. Prints a line for each word that may come next, with its
 * description after a tab, and `:files` or `:folders` if such a name may.
 *
 * @param words the words after `upload-server`; the last one is being typed
 */
export async function complete(words: readonly string[], terminal: Terminal): Promise<number> {
  const typed = words.at(-1) ?? ''
  const { command, flag, config } = readWords(words.slice(0, -1))
  const { flags = {}, commands = [], arg = {} } = command
  const own = Object.entries(flags).map(([name, one]): Candidate => [spell(name, one), one.about])
  const below = commands.map(({ name, about }): Candidate => [name, about])
  const offer = async (value: Pick<Value, 'choices' | 'offers'>) =>
    [...new Set(await wordsFor(value, config, terminal))].map((word): Candidate => [word, ''])
  const candidates = flag
    ? await offer(flag.value ?? {})
    : typed.startsWith('-')
      ? [...own, HELP_FLAG]
      : [...below, ...(below.length > 0 ? [HELP] : []), ...(await offer(arg))]
  for (const [word, meaning] of candidates) {
    if (word.startsWith(':')) terminal.print(word)
    else if (word.startsWith(typed)) terminal.print(`${word}\t${meaning}`)
  }
  return 0
}

interface TypedLine {
  /** The command, or the program itself, which has the flags of the default command. */
  readonly command: Pick<Command, 'flags' | 'commands' | 'arg'>
  /** The flag whose value comes next. */
  readonly flag: Flag | undefined
  /** Value of --config. */
  readonly config: string | undefined
}

function readWords(words: readonly string[]): TypedLine {
  let command: TypedLine['command'] = {
    commands: COMMANDS,
    flags: COMMANDS.find(one => one.isDefault)?.flags ?? {},
  }
  let flag: readonly [name: string, flag: Flag] | undefined
  let config: string | undefined
  for (const word of words) {
    if (flag) {
      if (flag[0] === 'config') config = word
      flag = undefined
    } else if (word.startsWith('-'))
      flag = Object.entries(command.flags ?? {}).find(
        ([name, one]) => one.value && [one.short, spell(name, one)].includes(word),
      )
    else command = command.commands?.find(one => [one.name, ...(one.aliases ?? [])].includes(word)) ?? command
  }
  return { command, flag: flag?.[1], config }
}

async function wordsFor(
  { choices, offers }: Pick<Value, 'choices' | 'offers'>,
  file: string | undefined,
  terminal: Terminal,
): Promise<readonly string[]> {
  if (choices || offers === undefined) return choices ?? []
  if (typeof offers === 'function') return offers()
  if (offers === 'file' || offers === 'folder') return [`:${offers}s`] // The shell knows them.
  // Completion runs no code of the configuration and prints no errors.
  const { ids } = await glance({ ...terminal, file }).catch(() => ({ ids: [] as string[] }))
  if (offers === 'destination') return ids
  return ids.map(id => id.replace(offers === 'picbed' ? /\/.*/s : /^[^/]*\//, ''))
}
