import { isatty } from 'node:tty'
import { createCanceller } from '../flow/cancellation.ts'
import { EXIT } from './exit-code.ts'

/** Aborted on Ctrl-C and similar signals. A second signal ends the process immediately. */
export function untilInterrupted(): AbortSignal {
  const interrupted = createCanceller()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      if (interrupted.signal.aborted) process.exit(EXIT.interrupted)
      interrupted.abort()
      process.stdin.destroy()
    })
  }
  return interrupted.signal
}

const terminalAtStart = [0, 1, 2].find(fd => isatty(fd))

const isTerminalClosed = () => terminalAtStart !== undefined && !isatty(terminalAtStart)

/** The signals of a server. SIGHUP reloads the configuration. A closed terminal also sends SIGHUP: the server stops instead. */
export function onServerSignal(stop: () => void, reload: () => void): void {
  process
    .on('SIGTERM', stop)
    .on('SIGINT', stop)
    .on('SIGHUP', () => (isTerminalClosed() ? stop() : reload()))
}

/** Ends the process with a code. After its terminal was closed, Node would abort instead of exiting. */
export function exit(code: number): never {
  if (isTerminalClosed()) process.removeAllListeners('SIGHUP').kill(process.pid, 'SIGHUP')
  return process.exit(code)
}
