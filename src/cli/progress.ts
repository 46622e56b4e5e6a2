import { oneLine, type Terminal } from './terminal.ts'

/** Work that is over sooner needs no words. */
const PATIENCE_MS = 500
/** Cells of a bar. */
const WIDTH = 24

/** A line on standard error that says what goes on, where a person looks at it. */
export interface ProgressLine {
  update(text: string): void
  /** Writes lines while it is out of the way. */
  around(write: () => void): void
  /** Takes the line away. */
  stop(): void
}

export function startProgress(
  text: string,
  { isInteractive }: Pick<Terminal, 'isInteractive'>,
): ProgressLine {
  let current = oneLine(text)
  let isOver = !isInteractive
  let line: { text: string; stop(): void; clear(): void; render(): void } | undefined
  const begin = async () => {
    const { default: ora } = await import('ora')
    // Standard input may be a file on its way.
    if (!isOver) line = ora({ text: current, stream: process.stderr, discardStdin: false }).start()
  }
  const timer = isInteractive ? setTimeout(() => void begin(), PATIENCE_MS) : undefined
  return {
    update(next) {
      current = oneLine(next)
      if (line) line.text = current
    },
    around(write) {
      line?.clear()
      write()
      if (!isOver) line?.render()
    },
    stop() {
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
