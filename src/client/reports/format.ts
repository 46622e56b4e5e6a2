import { basename, extname } from 'node:path'
import { type Format, formatLink as formatPageLink } from '../../page/links.ts'
import { isImageExtension } from '../../payload/extensions.ts'
import { cleanLink, oneLine, toJson, toJsonLine } from '../../safe-text.ts'
import type { Result } from '../result.ts'

/** The output formats of `upload`. */
export const FORMATS = ['url', 'markdown', 'html', 'bbcode', 'json', 'ndjson'] as const
export type OutputFormat = (typeof FORMATS)[number]

/** Whether an argument is a URL instead of the name of a file. */
export function isWebAddress(name: string): boolean {
  return /^https?:\/\//i.test(name) && URL.canParse(name)
}

/** The line on standard output for one result. Undefined if there is none. */
export function lineFor(result: Result, format: OutputFormat): string | undefined {
  if (format === 'json') return undefined
  if (format === 'ndjson') return toJsonLine(result)
  return result.url === undefined ? undefined : formatResultLink(result.url, result, format)
}

/** The text on standard output after all results. Undefined if there is none. */
export function endFor(results: readonly Result[], format: OutputFormat): string | undefined {
  return format === 'json' ? toJson(results) : undefined
}

/** Formats a link in the same way as the upload page. */
export function formatResultLink(url: string, result: Result, format: Format): string {
  return formatPageLink(
    { url, name: titleOf(oneLine(result.name)), isImage: isImageLink(url, result) },
    format,
  )
}

/** Whether a link is that of an image, by media type or extension. Links without an extension are those of image hosts. */
export function isImageLink(url: string, { contentType }: Pick<Result, 'contentType'>): boolean {
  if (contentType !== undefined) return contentType.startsWith('image/')
  const extension = URL.canParse(url) ? extname(new URL(url).pathname) : ''
  return extension === '' || isImageExtension(extension)
}

/** URL that opens a trace of Playwright. The destination must allow other origins to read it (CORS). Undefined for other files. */
export function traceViewerOf({ name, url }: Pick<Result, 'name' | 'url'>): string | undefined {
  const isTrace = url !== undefined && /(?:^|[\\/])trace(?:\.zip)?$/.test(name)
  return isTrace ? `https://trace.playwright.dev/?trace=${encodeURIComponent(cleanLink(url))}` : undefined
}

export const titleOf = (name: string) => basename(isWebAddress(name) ? new URL(name).pathname : name)
