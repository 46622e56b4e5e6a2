import type { Entry } from '../../client/entries.ts'
import { endFor, lineFor, type OutputFormat } from '../../client/reports/format.ts'
import { interruption, type Result } from '../../client/result.ts'
import type { UploadEvents } from '../../client/uploads.ts'
import { bytes } from '../../log-lines.ts'
import { showMoment } from '../../times.ts'
import { bar, type ProgressLine } from '../progress.ts'
import { oneLine, type Terminal } from '../terminal.ts'

interface PrinterOptions {
  readonly format: OutputFormat
  readonly quiet?: boolean
}

/** Prints links in order, as soon as all before them are known, and a progress line for each file at once. */
export function createResultPrinter(
  entries: readonly Entry[],
  { format, quiet }: PrinterOptions,
  terminal: Terminal,
  progress: ProgressLine,
): UploadEvents & { settle(index: number, result: Result): void; close(): readonly Result[] } {
  const results: (Result | undefined)[] = []
  const begun = performance.now()
  const noted = new Set<string>()
  let done = 0
  let most = 0
  let next = 0

  function printReady(from: readonly (Result | undefined)[]): void {
    for (let result = from[next]; result !== undefined; result = from[++next]) {
      const line = lineFor(result, format)
      if (line !== undefined) terminal.print(line)
    }
  }

  function noteOnce(message: string): void {
    if (!noted.has(message)) terminal.note(oneLine(terminal.mask(message)))
    noted.add(message)
  }

  function showProgress(count: number): void {
    most = Math.max(most, count)
    if (entries.length > 1) progress.update(bar(most, entries.length, 'files'))
  }

  return {
    settle(index: number, result: Result): void {
      results[index] = result
      done++
      progress.around(() => {
        if (!quiet && result.url !== undefined) {
          const size = result.size === undefined ? '' : `  ${bytes(result.size)}`
          const seconds = ((performance.now() - begun) / 1000).toFixed(1)
          const { expiresAt } = result
          const end = expiresAt === undefined ? '' : `  expires ${showMoment(Date.parse(expiresAt))}`
          terminal.note(`[${done}/${entries.length}] ${oneLine(result.name)}${size}  ${seconds} s${end}`)
        }
        if (result.url !== undefined && result.error !== undefined) noteOnce(result.error)
        if (result.warning !== undefined) terminal.note(oneLine(terminal.mask(`Warning: ${result.warning}`)))
        printReady(results)
      })
      showProgress(done)
    },
    onStored: showProgress,
    onNotice: message => progress.around(() => noteOnce(message)),
    /** Returns all results. Files without a result count as interrupted. */
    close(): readonly Result[] {
      const all = entries.map(({ name }, index) => results[index] ?? interruption(name))
      printReady(all)
      const end = endFor(all, format)
      if (end !== undefined) terminal.print(end)
      return all
    },
  }
}

/** Above this number, files that failed for the same reason are counted instead of listed. */
const MOST_NAMED = 20

/** One line for each file that was not stored, or one for many files with the same reason. */
export function toFailureLines(failed: readonly Result[]): string[] {
  const reasons = new Map<string, string[]>()
  for (const { name, error = '' } of failed) {
    const names = reasons.get(error) ?? []
    names.push(name)
    reasons.set(error, names)
  }
  return [...reasons].flatMap(([error, names]) => {
    if (names.length <= MOST_NAMED) return names.map(name => `${name}: ${error}`)
    return `${names[0]} and ${names.length - 1} others: ${error}`
  })
}
