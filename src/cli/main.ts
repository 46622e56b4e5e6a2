import { isAbsolute, resolve } from 'node:path'
import type { Command, CommanderError } from 'commander'
import { keysOf } from '../members.ts'
import { hideSecretsInCrashes, redirectConsole } from '../server/crash.ts'
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
  init: () => import('./init/init.ts'),
  check: () => import('./check.ts'),
  heartbeat: () => import('./heartbeat.ts'),
  history: () => import('./history.ts'),
  remove: () => import('./remove.ts'),
  finalize: () => import('./finalize.ts'),
  backup: () => import('./backup.ts'),
  config: () => import('./config.ts'),
  completion: () => import('./complete.ts'),
} satisfies Record<string, () => Promise<CommandFile>>

const NAMES = keysOf(COMMANDS)

/** Runs the command line of this process and sets the exit code. */
export async function main(argv: readonly string[]): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', endUnlessReaderLeft)
  const terminal = createTerminal(process, untilInterrupted)
  redirectConsole()
  hideSecretsInCrashes(terminal.mask)
  process.exitCode = await run(argv.slice(2), terminal)
}

/**
 * Runs a command line. An error of the user is reported in a sentence, never as a stack trace.
 *
 * @returns the exit code
 */
export async function run(words: readonly string[], terminal: Terminal): Promise<number> {
  try {
    if (words.length === 1 && ['--version', '-V'].includes(words[0] ?? '')) {
      terminal.print(readVersion()) // without loading anything else
      return 0
    }
    const program = await createProgram(terminal, words)
    await program.parseAsync(words, { from: 'user' })
    return terminal.exitCode
  } catch (error) {
    if (isCommanders(error)) return error.exitCode // Commander has already printed the error or the help.
    terminal.note(terminal.mask(describe(error, terminal)))
    return 1
  }
}

/** Does not use the class of commander, which is loaded later, so that a missing package is reported, too. */
function isCommanders(error: unknown): error is CommanderError {
  return error instanceof Error && 'exitCode' in error && typeof error.exitCode === 'number'
}

function describe(error: unknown, { env }: Terminal): string {
  if (!(error instanceof Error)) return String(error)
  if ('code' in error && error.code === 'ERR_MODULE_NOT_FOUND') return describeMissing(error.message)
  if ('code' in error && (error.code === 'EMFILE' || error.code === 'ENFILE'))
    return `${error.message}. Raise the limit of open files (ulimit -n, or LimitNOFILE= in systemd).`
  const expected = ['ConfigError', 'UploadError', 'PortTakenError'].includes(error.name) || 'syscall' in error
  return expected || env['DEBUG'] === undefined ? error.message : (error.stack ?? error.message)
}

const FOLDER = resolve(import.meta.dirname, '../..')

/** @param message of Node: "Cannot find package 'express' imported from …" */
function describeMissing(message: string): string {
  const [, name = ''] = /package '([^']+)'/.exec(message) ?? []
  // Node also says "package" for a file that is missing from a package or can't be opened.
  const isPackage = name !== '' && !isAbsolute(name)
  const what = isPackage ? `The package "${name}" is not installed` : `Could not read a file: ${message}`
  return `${what}. Run "npm install" in "${FOLDER}", or reinstall upload-server.`
}

/** A closed pipe (`upload-server upload … | head -1`) is not an error. Any other write error, such as a full disk, is. */
function endUnlessReaderLeft(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') return
  process.stderr.write(`Could not write the output: ${error.message}\n`)
  process.exit(1)
}

/**
 * Creates the program with all commands, or with those that a command line needs.
 *
 * @param words of the command line; undefined for all commands
 */
export async function createProgram(terminal: Terminal, words?: readonly string[]): Promise<Command> {
  const { Command } = await import('commander')
  const program = new Command('upload-server')
    .description(
      'Accepts files over HTTP like PicGo and PicList, stores them at any destination, and returns their links.',
    )
    .version(readVersion())
    .configureOutput({
      writeOut: text => terminal.print(text.replace(/\n$/, '')),
      writeErr: text => terminal.note(withoutLogins(text).replace(/\n$/, '')),
    })
    .exitOverride()
    .addHelpText(
      'after',
      `
Get started:
  upload-server init                         create a configuration
  upload-server                              start the server
  upload-server upload image.png             upload a file without a server

"upload-server" without a command starts the server and accepts the options of "serve" (upload-server serve --help), such as:
  upload-server --host 0.0.0.0 --port 8080 --key SECRET

Exit codes: 0 success, 1 failure. Errors are printed on standard error.`,
    )
  for (const name of words ? namesFor(words) : NAMES) (await COMMANDS[name]()).register(program, terminal)
  for (const command of [program, ...program.commands]) {
    const asked = [program.name(), 'serve'].includes(command.name()) ? '' : ` ${command.name()}`
    command.showHelpAfterError(`Try: upload-server${asked} --help`)
  }
  return program
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

/** Loads only the named command, because loading takes time. Help, completion and unknown commands need all of them. */
function namesFor([first, ...others]: readonly string[]): readonly (keyof typeof COMMANDS)[] {
  const named = NAMES.filter(name => name === first)
  if (named.length > 0) return named
  const isHelpAsked = [first, ...others].some(word => word === '--help' || word === '-h')
  return first === undefined || (/^-./.test(first) && first !== '--' && !isHelpAsked) ? ['serve'] : NAMES
}
