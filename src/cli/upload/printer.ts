import type { Entry } from '../../client/entries.ts'
import { endFor, lineFor, type OutputFormat } from '../../client/reports/format.ts'
import { interruption, type Result } from '../../client/result.ts'
import { bytes } from '../../log-lines.ts'
import { showMoment } from '../../times.ts'
import { oneLine, type Terminal } from '../terminal.ts'

/** Prints links in order, as soon as all before them are known, and a line about each file at once. */
export function createPrinter(
  entries: readonly Entry[],
  { format, quiet }: { readonly format: OutputFormat; readonly quiet?: boolean },
  terminal: Terminal,
) {
  const settled: (Result | undefined)[] = []
  const begun = performance.now()
  const noted = new Set<string>()
  let [done, next] = [0, 0]

  function printReady(from: readonly (Result | undefined)[]): void {
    for (let result = from[next]; result !== undefined; result = from[++next]) {
      const line = lineFor(result, format)
      if (line !== undefined) terminal.print(line)
    }
  }

  /** All results. Files without one count as interrupted. */
  const results = (): readonly Result[] =>
    entries.map(({ name }, index) => settled[index] ?? interruption(name))

  return {
    results,
    onNotice(message: string): void {
      if (!noted.has(message)) terminal.note(oneLine(message))
      noted.add(message)
    },
    /** Takes the result of a file. */
    settle(index: number, result: Result): void {
      const { name, url, size, expiresAt, warning } = result
      settled[index] = result
      done++
      if (!quiet && url !== undefined) {
        const seconds = ((performance.now() - begun) / 1000).toFixed(1)
        const parts = [oneLine(name), ...(size === undefined ? [] : [bytes(size)]), `${seconds} s`]
        if (expiresAt !== undefined) parts.push(`expires ${showMoment(Date.parse(expiresAt))}`)
        terminal.note(`[${done}/${entries.length}] ${parts.join('  ')}`)
      }
      if (warning !== undefined) terminal.note(oneLine(`Warning: ${warning}`))
      printReady(settled)
    },
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
