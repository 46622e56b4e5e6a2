import { isatty } from 'node:tty'
import { createCanceller } from '../flow/cancellation.ts'
import { EXIT } from './exit-code.ts'

/** The signals that the process receives. */
export interface Signals {
  /** Calls back at SIGTERM or SIGINT, every time. */
  onStop(callback: () => void): void
  /** Calls back at SIGHUP, every time. */
  onReload(callback: () => void): void
  /** Ends the process now. */
  exit(code: number): void
}

/** Aborted on Ctrl-C and similar signals. A second signal ends the process immediately. */
export function untilInterrupted(): AbortSignal {
  const interrupted = createCanceller()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    // Not `once`: without a listener, the library that shows the progress would end the process.
    process.on(name, () => {
      if (interrupted.signal.aborted) process.exit(EXIT.interrupted)
      interrupted.abort()
      process.stdin.destroy()
    })
  }
  return interrupted.signal
}

const terminalAtStart = [0, 1, 2].find(fd => isatty(fd))

/** Whether the terminal of this process was closed. */
export function isHangup(): boolean {
  return terminalAtStart !== undefined && !isatty(terminalAtStart)
}

/** SIGHUP reloads the configuration. If the terminal was closed, which also sends SIGHUP, the server stops instead. */
export function realSignals(): Signals {
  return {
    onStop: callback =>
      void process
        .on('SIGTERM', callback)
        .on('SIGINT', callback)
        .on('SIGHUP', () => isHangup() && callback()),
    onReload: callback => void process.on('SIGHUP', () => isHangup() || callback()),
    exit: code => process.exit(code),
  }
}
