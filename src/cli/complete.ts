import { TOKEN_PROVIDERS } from '../client/tokens/token-source.ts'
import { glance } from '../config/load.ts'
import { LOG_LEVELS } from '../config/schema.ts'
import type { Command, Option } from '../packages/commander.ts'
import { Argument } from '../packages/commander.ts'
import { PROVIDER_TYPES } from '../providers/registry.ts'
import { endWith } from './command.ts'
import type { Terminal } from './terminal.ts'

// By hand: the library with an adapter for commander (@bomb.sh/tab 0.0.22) never lets the shell complete file names, and takes
// no words that have to be read first, such as the destinations of a configuration.

/** A word that may come next, and its description. */
type Candidate = readonly [word: string, meaning: string]

/** Printed if a file name may come next. */
const FILES = ':files'

/** The shells with completion. */
const SHELLS = ['bash', 'zsh', 'fish'] as const

export function register(program: Command, terminal: Terminal): void {
  program
    .command('completion')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .addHelpText(
      'after',
      `
Examples:
  eval "$(upload-server completion bash)"    in ~/.bashrc, and zsh in ~/.zshrc
  upload-server completion fish | source     in ~/.config/fish/completions/upload-server.fish`,
    )
    .action((shell: (typeof SHELLS)[number]) => {
      for (const line of SCRIPTS[shell].split('\n')) terminal.print(line)
    })
  program
    .command('complete', { hidden: true })
    .argument('[words...]')
    .action((words: string[]) => endWith(terminal, complete(program, words, terminal)))
}

/**
 * Is run by the completion scripts. Prints a line for each word that may come next, with its description after a tab, and
 * `:files` if a file name may come next.
 *
 * @param words the words after `upload-server`; the last one is being typed
 */
async function complete(program: Command, words: readonly string[], terminal: Terminal): Promise<number> {
  const { command, option, config } = readWords(program, words.slice(0, -1))
  const typed = words.at(-1) ?? ''
  const candidates = option
    ? await valuesOf(option, config, terminal)
    : typed.startsWith('-')
      ? optionsOf(command)
      : [...subcommandsOf(command), ...(await argumentsOf(command, config, terminal))]
  for (const [word, meaning] of candidates) {
    if (word === FILES) terminal.print(FILES)
    else if (word.startsWith(typed)) terminal.print(`${word}\t${meaning}`)
  }
  return 0
}

interface TypedLine {
  readonly command: Command
  /** The option whose value comes next. */
  readonly option: Option | undefined
  /** Value of --config. */
  readonly config: string | undefined
}

function readWords(program: Command, words: readonly string[]): TypedLine {
  let command = program
  let option: Option | undefined
  let config: string | undefined
  for (const word of words) {
    if (option) {
      if (option.long === '--config') config = word
      option = undefined
    } else if (word.startsWith('-')) {
      option = allOptions(command).find(
        one => [one.short, one.long].includes(word) && (one.required || one.optional),
      )
    } else {
      command = command.commands.find(one => [one.name(), ...one.aliases()].includes(word)) ?? command
    }
  }
  return { command, option, config }
}

/** The options of a command, and those of `serve` where the name of the command may be omitted. */
function allOptions(command: Command): readonly Option[] {
  const implied = command.parent ? undefined : command.commands.find(one => one.name() === 'serve')
  return [...command.options, ...(implied?.options ?? [])]
}

function optionsOf(command: Command): Candidate[] {
  const shown = allOptions(command).filter(({ hidden }) => !hidden)
  const own = shown.map(({ long, description }): Candidate => [long ?? '', description])
  return [...own, ['--help', 'display help']]
}

function subcommandsOf(command: Command): Candidate[] {
  const shown = command.createHelp().visibleCommands(command)
  return shown.map(one => [one.name(), one.description()])
}

async function argumentsOf(
  command: Command,
  config: string | undefined,
  terminal: Terminal,
): Promise<Candidate[]> {
  const [argument] = command.registeredArguments
  if (argument?.argChoices) return argument.argChoices.map(word => [word, ''])
  if (argument?.name() === 'file') return [[FILES, '']]
  return argument?.name() === 'destination' ? (await idsOf(config, terminal)).map(id => [id, '']) : []
}

async function valuesOf(
  option: Option,
  config: string | undefined,
  terminal: Terminal,
): Promise<Candidate[]> {
  if (option.argChoices) return option.argChoices.map(word => [word, ''])
  const ids = () => idsOf(config, terminal)
  const words = async (): Promise<readonly string[]> => {
    switch (option.long) {
      case '--config':
      case '--files-from':
        return [FILES]
      case '--log-level':
        return LOG_LEVELS
      case '--token-from':
        return TOKEN_PROVIDERS
      case '--provider':
        return PROVIDER_TYPES
      case '--destination':
        return ids()
      case '--picbed':
        return (await ids()).map(id => id.replace(/\/.*/s, ''))
      case '--config-name':
        return (await ids()).map(id => id.replace(/^[^/]*\//, ''))
      default:
        return []
    }
  }
  return [...new Set(await words())].map(word => [word, ''])
}

/** The destinations of the configuration, if it can be read. Completion runs no code of it and prints no errors. */
async function idsOf(file: string | undefined, terminal: Terminal): Promise<string[]> {
  return glance({ ...terminal, file, noteOnce: () => {} }).then(
    ({ ids }) => ids,
    () => [],
  )
}

const SCRIPTS: Record<(typeof SHELLS)[number], string> = {
  bash: `# In ~/.bashrc: eval "$(upload-server completion bash)"
_upload_server() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == :files ]]; then compopt -o default
    else COMPREPLY+=("$(printf '%q' "\${line%%$'\\t'*}")"); fi
  done < <(upload-server complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _upload_server upload-server`,
  zsh: `#compdef upload-server
# In ~/.zshrc, behind compinit: eval "$(upload-server completion zsh)"
_upload_server() {
  local line
  local -a found shown
  for line in "\${(@f)$(upload-server complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    if [[ $line == :files ]]; then _files
    elif [[ -n $line ]]; then
      found+=("\${line%%$'\\t'*}")
      shown+=("\${line/$'\\t'/  }")
    fi
  done
  (( $#found )) && compadd -l -d shown -a found
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _upload_server "$@"
else compdef _upload_server upload-server; fi`,
  fish: `# In ~/.config/fish/completions/upload-server.fish: upload-server completion fish | source
function __upload_server_complete
  set -l words (commandline -opc)
  for line in (upload-server complete -- $words[2..-1] "$(commandline -ct)" 2>/dev/null)
    if test "$line" = :files
      __fish_complete_path (commandline -ct)
    else
      echo $line
    end
  end
end
complete -c upload-server -f -a '(__upload_server_complete)'`,
}
