import { lineFor, type OutputFormat } from '../../client/reports/format.ts'
import { isFailure, type Result } from '../../client/result.ts'
import { copyText, notify } from '../../clipboard/desktop.ts'
import { messageOf } from '../../errors.ts'
import { oneLine, type Terminal } from '../terminal.ts'

const MOST_CHARACTERS = 300

interface DesktopOptions {
  readonly format: OutputFormat
  /** Whether to copy the links to the clipboard. */
  readonly copy?: boolean
  /** Whether to show a desktop notification. */
  readonly notify?: boolean
}

/** Copies the links and shows the result on the desktop. If that fails, it is a warning. */
export async function tellDesktop(
  results: readonly Result[],
  options: DesktopOptions,
  terminal: Terminal,
): Promise<void> {
  const format = ['json', 'ndjson'].includes(options.format) ? 'url' : options.format
  const links = results.flatMap(one => lineFor(one, format) ?? [])
  if (options.copy && links.length > 0)
    await copyText(links.join('\n'), terminal).catch(warn('The links were not copied', terminal))
  if (!options.notify) return
  const failed = results.filter(isFailure)
  const [first] = failed
  const files = results.length === 1 ? 'a file' : `${results.length} files`
  if (first === undefined) return notifyOf(`Uploaded ${files}`, links[0] ?? '', terminal)
  const title = `${failed.length} of ${results.length} uploads failed`
  await notifyOf(title, `${first.name}: ${first.error}`, terminal)
}

/** Shows a notification. If that fails, it is a warning. */
export async function notifyOf(title: string, body: string, terminal: Terminal): Promise<void> {
  const shown = oneLine(terminal.mask(body)).slice(0, MOST_CHARACTERS)
  await notify(title, shown, terminal).catch(warn('No notification was shown', terminal))
}

const warn = (what: string, terminal: Terminal) => (error: unknown) =>
  terminal.note(oneLine(`Warning: ${what}: ${messageOf(error)}.`))
