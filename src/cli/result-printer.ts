import { bytes } from '../log-lines.ts'
import type { Entry } from './entries.ts'
import { endFor, lineFor, type OutputFormat } from './format.ts'
import { bar, type Progress } from './progress.ts'
import { interruption, type Result } from './result.ts'
import { oneLine, type Terminal } from './terminal.ts'

interface PrinterOptions {
  readonly format: OutputFormat
  readonly quiet?: boolean
  /** Milliseconds. */
  readonly timeout: number
}

/** Puts results in order, prints each when its turn has come, and says a line of each at once. */
export function createResultPrinter(
  entries: readonly Entry[],
  { format, quiet, timeout }: PrinterOptions,
  terminal: Terminal,
  progress: Progress,
) {
  const results: Result[] = []
  const begun = performance.now()
  const troubles = new Set<string>()
  let done = 0
  let next = 0

  function printReady(): void {
    for (; results[next] !== undefined; next++) {
      const line = lineFor(results[next] as Result, format)
      if (line !== undefined) terminal.print(line)
    }
  }

  return {
    settle(index: number, result: Result): void {
      results[index] = result
      done++
      progress.around(() => {
        if (!quiet && result.url !== undefined) {
          const size = result.size === undefined ? '' : `  ${bytes(result.size)}`
          const seconds = ((performance.now() - begun) / 1000).toFixed(1)
          terminal.note(`[${done}/${entries.length}] ${oneLine(result.name)}${size}  ${seconds} s`)
        }
        printReady()
      })
      if (entries.length > 1) progress.update(bar(done, entries.length, 'files'))
    },
    trouble(message: string): void {
      if (troubles.has(message)) return
      troubles.add(message)
      const span = timeout < 60_000 ? `${timeout / 1000} s` : `${Math.round(timeout / 60_000)} min`
      const what = message.endsWith('.') ? message.slice(0, -1) : message
      progress.around(() => terminal.note(oneLine(terminal.mask(`${what}. It is tried again for ${span}.`))))
    },
    /** Of what was not settled it is said that it was interrupted. */
    close(unfinished: ReadonlyMap<number, string> = new Map()): readonly Result[] {
      for (const [index, { name }] of entries.entries()) {
        const finalizationId = unfinished.get(index)
        results[index] ??= interruption(name)
        if (finalizationId !== undefined) results[index] = { ...(results[index] as Result), finalizationId }
      }
      printReady()
      const end = endFor(results, format)
      if (end !== undefined) terminal.print(end)
      return results
    },
  }
}
