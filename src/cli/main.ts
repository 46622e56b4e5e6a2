import { fileURLToPath } from 'node:url'
import { PACKAGE_FOLDER } from '../package.ts'
import { CommanderError } from '../packages/commander.ts'
import { hideSecretsInCrashes, redirectConsole } from '../server/crash.ts'
import { type Call, UsageError } from './define.ts'
import { createProgram, usageCodeOf } from './program.ts'
import { untilInterrupted } from './signals.ts'
import { createTerminal, type Terminal } from './terminal.ts'

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
    if (words[0] === 'complete') {
      const { complete } = await import('./completion/complete.ts')
      return await complete(words.slice(words[1] === '--' ? 2 : 1), terminal)
    }
    createProgram(terminal, read => {
      call = read
    }).parse(words, { from: 'user' })
    const loaded = await call?.command.load?.()
    return loaded && call ? await loaded.run(call, terminal) : 0
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode // It has already printed the error or the help.
    terminal.note(describe(error, terminal))
    return error instanceof UsageError && call ? usageCodeOf(call.command) : 1
  }
}

function describe(error: unknown, { env }: Terminal): string {
  if (!(error instanceof Error)) return String(error)
  const { message, name, stack = message, cause, code } = error as Error & { code?: unknown }
  if (code === 'ERR_MODULE_NOT_FOUND')
    return `${message}. Run "npm install" in "${fileURLToPath(PACKAGE_FOLDER)}", or reinstall upload-server.`
  if (code === 'EMFILE' || code === 'ENFILE')
    return `${message}. Raise the limit of open files (ulimit -n, or LimitNOFILE= in systemd).`
  // The message is also for remote clients, so it has no path. The cause has it.
  if (code === 'database_unavailable' && cause instanceof Error)
    return `${message}\n${cause.message.split('\n')[0]}`
  const isExpected = ['ConfigError', 'UploadError', 'PortTakenError'].includes(name) || 'syscall' in error
  return isExpected || env['DEBUG'] === undefined ? message : stack
}
