import { appendFile } from 'node:fs/promises'
import { basename, extname } from 'node:path'
import { addressIn, type Format, formatLink as formatPageLink } from '../page/client/links.ts'
import { oneLine, type Terminal, toJson } from './terminal.ts'

/** What `upload` can print. */
export const FORMATS = ['url', 'markdown', 'html', 'bbcode', 'json'] as const

/** What became of one file or address of the command line. */
export interface Result {
  /** As it was typed. */
  readonly name: string
  readonly url?: string
  readonly error?: string
  /** It is stored, but a later step failed: what finishes it without uploading again. */
  readonly finalizationId?: string
}

/** Whether an argument is an address and not the name of a file. */
export function isWebAddress(name: string): boolean {
  return /^https?:\/\//i.test(name) && URL.canParse(name)
}

/** What was stored, one link a line; as JSON everything. */
export function printResults(
  results: readonly Result[],
  format: (typeof FORMATS)[number],
  terminal: Terminal,
): void {
  if (format === 'json') {
    terminal.print(toJson(results))
    return
  }
  for (const { name, url } of results)
    if (url !== undefined) terminal.print(formatLink(url, oneLine(name), format))
}

/** A link as it is wanted, as the usage page writes it. */
function formatLink(url: string, name: string, format: Format): string {
  return formatPageLink({ url, name: titleOf(name), isImage: isPicture(url) }, format)
}

/** By its extension: the links of some hosts have none, and those take pictures. */
function isPicture(url: string): boolean {
  const extension = URL.canParse(url) ? extname(new URL(url).pathname) : ''
  return extension === '' || /^\.(?:png|apng|jpe?g|gif|webp|avif|svg|bmp|ico|tiff?|hei[cf])$/i.test(extension)
}

const titleOf = (name: string) => basename(isWebAddress(name) ? new URL(name).pathname : name)

/** Text without any markup, HTML included. */
const escapeMarkdown = (text: string) => oneLine(text).replace(/[[\]\\<>&`*_~|!:#]/g, '\\$&')

/**
 * Finds the file whose Markdown GitHub Actions shows below a run, before anything is uploaded.
 *
 * @throws Error when there is none
 */
export async function openSummary(
  env: Terminal['env'],
): Promise<(results: readonly Result[]) => Promise<void>> {
  const file = env['GITHUB_STEP_SUMMARY']
  if (!file)
    throw new Error('--github-summary needs the variable GITHUB_STEP_SUMMARY, which GitHub Actions sets.')
  await appendFile(file, '')
  return results => appendFile(file, `${results.map(toSummary).join('\n')}\n\n`)
}

function toSummary({ name, url, error }: Result): string {
  const title = escapeMarkdown(titleOf(name))
  if (url === undefined) return `- ❌ ${title}: ${escapeMarkdown(error ?? '')}`
  const address = addressIn(url, 'markdown')
  return `- [${title}](${address})${isPicture(url) ? `\n\n  ![${title}](${address})\n` : ''}`
}
