import { Command, CommanderError } from 'commander'
import { keepOutputOurs, keepReportsQuiet } from '../server/crash.ts'
import { readVersion } from '../version.ts'
import type { CommandFile } from './command.ts'
import { untilInterrupted } from './signals.ts'
import { createTerminal, type Terminal } from './terminal.ts'

/** The commands, in the order in which the help lists them. */
const COMMANDS = {
  serve: () => import('./serve.ts'),
  upload: () => import('./upload.ts'),
  comment: () => import('./comment.ts'),
  markdown: () => import('./markdown.ts'),
  mcp: () => import('./mcp.ts'),
  init: () => import('./init.ts'),
  check: () => import('./check.ts'),
  heartbeat: () => import('./heartbeat.ts'),
  history: () => import('./history.ts'),
  remove: () => import('./remove.ts'),
  finalize: () => import('./finalize.ts'),
  config: () => import('./config.ts'),
  completion: () => import('./complete.ts'),
} satisfies Record<string, () => Promise<CommandFile>>

const NAMES = Object.keys(COMMANDS) as (keyof typeof COMMANDS)[]

/** Runs the command line of this process and sets its exit code. */
export async function main(argv: readonly string[]): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', endUnlessReaderLeft)
  const terminal = createTerminal(process, untilInterrupted)
  keepOutputOurs()
  keepReportsQuiet(terminal.mask)
  process.exitCode = await run(argv.slice(2), terminal)
}

/**
 * Runs a command line. Mistakes of the user end in a sentence, never in a stack trace.
 *
 * @returns the exit code
 */
export async function run(words: readonly string[], terminal: Terminal): Promise<number> {
  try {
    const program = await createProgram(terminal, words)
    await program.parseAsync(words, { from: 'user' })
    return terminal.exitCode
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode // it was said, or was the help
    terminal.note(terminal.mask(describe(error, terminal)))
    return 1
  }
}

function describe(error: unknown, { env }: Terminal): string {
  if (!(error instanceof Error)) return String(error)
  const expected = ['ConfigError', 'UploadError', 'PortTakenError'].includes(error.name) || 'syscall' in error
  return expected || env['DEBUG'] === undefined ? error.message : (error.stack ?? error.message)
}

/** Whoever read the output and went away (`upload-server upload … | head -1`) has seen enough; a full disk is a failure. */
function endUnlessReaderLeft(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') return
  process.stderr.write(`The output can't be written: ${error.message}\n`)
  process.exit(1)
}

/**
 * The program with all its commands, or with those that a command line needs.
 *
 * @param words of the command line; undefined: all commands
 */
export async function createProgram(terminal: Terminal, words?: readonly string[]): Promise<Command> {
  const program = new Command('upload-server')
    .description('Takes files over HTTP as PicGo and PicList do, and answers with their links.')
    .version(readVersion())
    .configureOutput({
      writeOut: text => terminal.print(text.replace(/\n$/, '')),
      writeErr: text => terminal.note(withoutLogins(text).replace(/\n$/, '')),
    })
    .exitOverride()
    .addHelpText(
      'after',
      `
Start with:
  upload-server init                         make a configuration
  upload-server                              start the server
  upload-server upload picture.png           upload without one

The server takes, among others (upload-server serve --help):
  -p, --port <port>      -c, --config <file>
  -k, --key <key>        --host <host>       as in: upload-server --host 0.0.0.0 --key SECRET

It ends with 0 when everything was done and with 1 when something was not, which standard error explains.`,
    )
  for (const name of words ? namesFor(words) : NAMES) (await COMMANDS[name]()).register(program, terminal)
  for (const command of [program, ...program.commands]) {
    const asked = [program.name(), 'serve'].includes(command.name()) ? '' : ` ${command.name()}`
    command.showHelpAfterError(`Try: upload-server${asked} --help`)
  }
  return program
}

/** What was typed wrong is repeated, but for the passwords of its addresses. */
function withoutLogins(text: string): string {
  return text
    .split("'")
    .map(part => {
      const [begin, end] = [part.indexOf('//') + 2, part.lastIndexOf('@') + 1]
      return begin > 1 && end > begin ? part.slice(0, begin) + part.slice(end) : part
    })
    .join("'")
}

/** Loading takes time, so a command that is named is loaded alone; help, completion and mistakes need all of them. */
function namesFor([first, ...others]: readonly string[]): readonly (keyof typeof COMMANDS)[] {
  const named = NAMES.filter(name => name === first)
  if (named.length > 0) return named
  const isHelpAsked = [first, ...others].some(word => word === '--help' || word === '-h')
  return first === undefined || (/^-./.test(first) && first !== '--' && !isHelpAsked) ? ['serve'] : NAMES
}
