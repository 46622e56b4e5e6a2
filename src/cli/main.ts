import { isAbsolute, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { PACKAGE_FOLDER, readVersion } from '../package.ts'
import { CommanderError } from '../packages/commander.ts'
import { hideSecretsInCrashes, redirectConsole } from '../server/crash.ts'
import { COMMANDS } from './commands.ts'
import { type Call, UsageError } from './define.ts'
import { createProgram, usageCodeOf } from './program.ts'
import { untilInterrupted } from './signals.ts'
import { createTerminal, type Terminal } from './terminal.ts'

const PROGRAM = {
  name: 'upload-server',
  about:
    'Accepts files over HTTP like PicGo and PicList, stores them at any destination, and returns their links.',
  version: readVersion(),
  notes: `
Get started:
  upload-server init                         create a configuration
  upload-server                              start the server
  upload-server upload image.png             upload a file without a server

"upload-server" without a command starts the server and accepts the options of "serve" (upload-server serve --help), such as:
  upload-server --config blog.json --host 0.0.0.0 --port 8080

Exit codes: 0 success, 1 failure. Errors are printed on standard error.`,
}

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
  let call: Call | undefined
  try {
    const [first, ...rest] = words
    if (first === 'complete') {
      const { complete } = await import('./completion/complete.ts')
      return await complete(COMMANDS, rest[0] === '--' ? rest.slice(1) : rest, terminal)
    }
    createProgram(PROGRAM, COMMANDS, terminal, read => {
      call = read
    }).parse(words, { from: 'user' })
    const loaded = await call?.command.load?.()
    return loaded && call ? await loaded.run(call, terminal) : 0
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode // It has already printed the error or the help.
    terminal.note(terminal.mask(describe(error, terminal)))
    return error instanceof UsageError && call ? usageCodeOf(call.command) : 1
  }
}

function describe(error: unknown, { env }: Terminal): string {
  if (!(error instanceof Error)) return String(error)
  if ('code' in error && error.code === 'ERR_MODULE_NOT_FOUND') return describeMissing(error.message)
  if ('code' in error && (error.code === 'EMFILE' || error.code === 'ENFILE'))
    return `${error.message}. Raise the limit of open files (ulimit -n, or LimitNOFILE= in systemd).`
  // The message is also for remote clients, so it has no path. The cause has it.
  if ('code' in error && error.code === 'database_unavailable' && error.cause instanceof Error)
    return `${error.message}\n${error.cause.message.split('\n')[0]}`
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
