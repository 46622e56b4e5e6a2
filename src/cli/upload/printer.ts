import type { Entry } from '../../client/entries.ts'
import { endFor, lineFor, type OutputFormat } from '../../client/reports/format.ts'
import { interruption, type Result } from '../../client/result.ts'
import { bytes } from '../../log-lines.ts'
import { showMoment } from '../../times.ts'
import { bar, startProgress } from '../progress.ts'
import { oneLine, type Terminal } from '../terminal.ts'

/** Prints links in order, as soon as all before them are known, and a line about each file at once. */
export function startPrinter(
  entries: readonly Entry[],
  { format, quiet }: { readonly format: OutputFormat; readonly quiet?: boolean },
  terminal: Terminal,
) {
  const what = entries.length === 1 ? entries[0]?.name : `${entries.length} files`
  const progress = startProgress(`Uploading ${what}`, terminal)
  const settled: (Result | undefined)[] = []
  const begun = performance.now()
  const noted = new Set<string>()
  let [done, most, next] = [0, 0, 0]

  const note = (line: string) => progress.around(() => terminal.note(line))

  function printReady(from: readonly (Result | undefined)[]): void {
    for (let result = from[next]; result !== undefined; result = from[++next]) {
      const line = lineFor(result, format)
      if (line !== undefined) terminal.print(line)
    }
  }

  function onStored(count: number): void {
    most = Math.max(most, count)
    if (entries.length > 1) progress.update(bar(most, entries.length, 'files'))
  }

  /** All results. Files without one count as interrupted. */
  const results = (): readonly Result[] =>
    entries.map(({ name }, index) => settled[index] ?? interruption(name))

  return {
    note,
    onStored,
    results,
    onNotice(message: string): void {
      if (!noted.has(message)) note(oneLine(message))
      noted.add(message)
    },
    /** Takes the result of a file. */
    settle(index: number, result: Result): void {
      const { name, url, size, expiresAt, warning } = result
      settled[index] = result
      done++
      progress.around(() => {
        if (!quiet && url !== undefined) {
          const seconds = ((performance.now() - begun) / 1000).toFixed(1)
          const parts = [oneLine(name), ...(size === undefined ? [] : [bytes(size)]), `${seconds} s`]
          if (expiresAt !== undefined) parts.push(`expires ${showMoment(Date.parse(expiresAt))}`)
          terminal.note(`[${done}/${entries.length}] ${parts.join('  ')}`)
        }
        if (warning !== undefined) terminal.note(oneLine(`Warning: ${warning}`))
        printReady(settled)
      })
      onStored(done)
    },
    /** Removes the progress line. */
    stop: progress.stop,
    /** Prints what is left. @returns all results */
    finish(): readonly Result[] {
      const all = results()
      printReady(all)
      const end = endFor(all, format)
      if (end !== undefined) terminal.print(end)
      return all
    },
  }
}
