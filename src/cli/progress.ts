import { oneLine, type Terminal } from './terminal.ts'

/** Shorter work shows no progress, milliseconds. */
const DELAY_MS = 500
/** Width of a progress bar, characters. */
const WIDTH = 24

/** A progress line on standard error, if that is a terminal. */
export function startProgress(text: string, { isInteractive }: Pick<Terminal, 'isInteractive'>) {
  let current = oneLine(text)
  let isOver = !isInteractive
  let line: { text: string; stop(): void; clear(): void; render(): void } | undefined
  const begin = async () => {
    const { default: ora } = await import('ora')
    // Standard input may be the file to upload, so it must not be discarded.
    if (!isOver) line = ora({ text: current, stream: process.stderr, discardStdin: false }).start()
  }
  const timer = isInteractive ? setTimeout(() => void begin(), DELAY_MS) : undefined
  return {
    update(next: string): void {
      current = oneLine(next)
      if (line) line.text = current
    },
    /** Hides the progress line while `write` prints other lines. */
    around(write: () => void): void {
      line?.clear()
      write()
      if (!isOver) line?.render()
    },
    /** Removes the line. */
    stop(): void {
      isOver = true
      clearTimeout(timer)
      line?.stop()
    },
  }
}

export function bar(done: number, all: number, what: string): string {
  const full = Math.floor((done / all) * WIDTH)
  return `${'█'.repeat(full)}${'░'.repeat(WIDTH - full)} ${done} of ${all} ${what}`
}
