import { isAbsolute, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { keysOf } from '../members.ts'
import { PACKAGE_FOLDER, readVersion } from '../package.ts'
import type { Command, CommanderError } from '../packages/commander.ts'
import { hideSecretsInCrashes, redirectConsole } from '../server/crash.ts'
import type { CommandFile } from './command.ts'
import { untilInterrupted } from './signals.ts'
import { createTerminal, type Terminal } from './terminal.ts'

/** A command as the help lists it, and its file, which is loaded when the command is named. */
interface ListedCommand {
  readonly usage: string
  readonly description: string
  load(): Promise<CommandFile>
}

/** The commands, in the order in which the help lists them. */
const COMMANDS = {
  serve: {
    usage: 'serve [options]',
    description: 'start the server (the default command)',
    load: () => import('./serve.ts'),
  },
  upload: {
    usage: 'upload [options] [file...]',
    description: 'upload files, directly or through a running server, and print one link per line',
    load: () => import('./upload.ts'),
  },
  comment: {
    usage: 'comment [options] [results]',
    description: 'create or update a comment on a pull request that shows uploaded images',
    load: () => import('./comment.ts'),
  },
  markdown: {
    usage: 'markdown [options] <file...>',
    description: 'upload the images of Markdown notes and replace their links',
    load: () => import('./markdown.ts'),
  },
  mcp: {
    usage: 'mcp [options]',
    description:
      'let an AI agent upload files: run an MCP server (Model Context Protocol) on standard input and output',
    load: () => import('./mcp.ts'),
  },
  init: {
    usage: 'init [options]',
    description: 'create a configuration: ask questions, test the destination, save the file',
    load: () => import('./init/init.ts'),
  },
  check: {
    usage: 'check [options] [destination]',
    description:
      'test destinations: store a small image, download and compare it, remove it (see also: config validate)',
    load: () => import('./check.ts'),
  },
  heartbeat: {
    usage: 'heartbeat [options]',
    description: 'check whether the server is up (health check): exit with 0 if it responds',
    load: () => import('./heartbeat.ts'),
  },
  history: {
    usage: 'history [options]',
    description: 'list uploaded files, newest first',
    load: () => import('./history.ts'),
  },
  remove: {
    usage: 'remove|delete [options] [what...]',
    description: 'delete uploaded files and all their copies',
    load: () => import('./remove.ts'),
  },
  finalize: {
    usage: 'finalize [options] [id...]',
    description: 'run the failed post-upload steps (hooks, history) of stored files again',
    load: () => import('./finalize.ts'),
  },
  backup: {
    usage: 'backup [options] <file>',
    description: 'back up the SQLite database (jobs, history, expiry dates), also while the server runs',
    load: () => import('./backup.ts'),
  },
  config: {
    usage: 'config',
    description: 'show, validate or import the configuration',
    load: () => import('./config.ts'),
  },
  completion: {
    usage: 'completion <shell>',
    description: 'print the shell completion script for bash, zsh or fish',
    load: () => import('./complete.ts'),
  },
} satisfies Record<string, ListedCommand>

const NAMES = keysOf(COMMANDS)

/** Runs the command line of this process and sets the exit code. */
export async function main(words: readonly string[]): Promise<void> {
  const terminal = createTerminal(process, untilInterrupted)
  redirectConsole()
  hideSecretsInCrashes(terminal.mask)
  process.exitCode = await run(words, terminal)
}

/**
 * Runs a command line. An error of the user is reported in a sentence, never as a stack trace.
 *
 * @returns the exit code
 */
export async function run(words: readonly string[], terminal: Terminal): Promise<number> {
  try {
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

/** @param message of Node: "Cannot find package 'express' imported from …" */
function describeMissing(message: string): string {
  const [, name = ''] = /package '([^']+)'/.exec(message) ?? []
  // Node also says "package" for a file that is missing from a package or can't be opened.
  const isPackage = name !== '' && !isAbsolute(name)
  const what = isPackage ? `The package "${name}" is not installed` : `Could not read a file: ${message}`
  return `${what}. Run "npm install" in "${resolve(fileURLToPath(PACKAGE_FOLDER))}", or reinstall upload-server.`
}

/**
 * Creates the program with all commands, or with those that a command line needs.
 *
 * @param words of the command line; undefined for all commands
 */
export async function createProgram(terminal: Terminal, words?: readonly string[]): Promise<Command> {
  const { Command } = await import('../packages/commander.ts')
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
  upload-server --config blog.json --host 0.0.0.0 --port 8080

Exit codes: 0 success, 1 failure. Errors are printed on standard error.`,
    )
  if (words && isHelpAlone(words)) {
    for (const name of NAMES) program.command(COMMANDS[name].usage).description(COMMANDS[name].description)
    return program
  }
  for (const name of words ? namesFor(words) : NAMES) {
    const { description, load } = COMMANDS[name]
    const file = await load()
    file.register(program, terminal)
    program.commands.find(command => command.name() === name)?.description(description)
  }
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

/** Whether only the list of the commands is shown, which needs none of their files. */
const isHelpAlone = ([word = '', ...others]: readonly string[]) =>
  others.length === 0 && ['--help', '-h', 'help'].includes(word)

/** Loads only the named command, because loading takes time. Help, completion and unknown commands need all of them. */
function namesFor([first, ...others]: readonly string[]): readonly (keyof typeof COMMANDS)[] {
  const named = NAMES.filter(name => name === first)
  if (named.length > 0) return named
  const isHelpAsked = [first, ...others].some(word => word === '--help' || word === '-h')
  return first === undefined || (/^-./.test(first) && first !== '--' && !isHelpAsked) ? ['serve'] : NAMES
}
