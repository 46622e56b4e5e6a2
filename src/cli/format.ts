import { appendFile } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Terminal } from './terminal.ts'

/** What became of one file or address of the command line. */
export interface Result {
  /** As it was typed. */
  readonly name: string
  readonly url?: string
  readonly error?: string
}

/** Whether an argument is an address and not the name of a file. */
export function isWebAddress(name: string): boolean {
  return /^https?:\/\//i.test(name) && URL.canParse(name)
}

/** A link as it is wanted. */
export function formatLink(
  url: string,
  name: string,
  format: 'url' | 'markdown' | 'html' | 'bbcode',
): string {
  const title = titleOf(name)
  if (format === 'markdown') return `![${escapeMarkdown(title)}](${url})`
  if (format === 'html') return `<img src="${escapeHtml(url)}" alt="${escapeHtml(title)}">`
  if (format === 'bbcode') return `[img]${url}[/img]`
  return url
}

const titleOf = (name: string) => basename(isWebAddress(name) ? new URL(name).pathname : name)

const escapeMarkdown = (text: string) => text.replace(/[[\]\\]/g, '\\$&')

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
  const title = escapeMarkdown(titleOf(name)).replace(/[<&`*_]/g, '\\$&')
  if (url === undefined) return `- ❌ ${title}: ${escapeHtml(error ?? '')}`
  const isPicture = /\.(png|jpe?g|gif|webp|avif|svg)$/i.test(new URL(url).pathname)
  return `- [${title}](${url})${isPicture ? `\n\n  ![${title}](${url})\n` : ''}`
}

function escapeHtml(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;')
}
