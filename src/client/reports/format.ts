import { basename, extname } from 'node:path'
import { type Format, formatLink as formatPageLink } from '../../page/client/links.ts'
import { oneLine, toJson, toJsonLine } from '../../safe-text.ts'
import type { Result } from '../result.ts'

/** What `upload` can print. */
export const FORMATS = ['url', 'markdown', 'html', 'bbcode', 'json', 'ndjson'] as const
export type OutputFormat = (typeof FORMATS)[number]

/** Whether an argument is an address and not the name of a file. */
export function isWebAddress(name: string): boolean {
  return /^https?:\/\//i.test(name) && URL.canParse(name)
}

/** What stands on standard output for one result, as soon as its turn has come. */
export function lineFor(result: Result, format: OutputFormat): string | undefined {
  if (format === 'json') return undefined
  if (format === 'ndjson') return toJsonLine(result)
  return result.url === undefined ? undefined : formatResultLink(result.url, result, format)
}

/** What stands there at the end. */
export function endFor(results: readonly Result[], format: OutputFormat): string | undefined {
  return format === 'json' ? toJson(results) : undefined
}

/** A link as it is wanted, as the usage page writes it. */
export function formatResultLink(url: string, result: Result, format: Format): string {
  return formatPageLink(
    { url, name: titleOf(oneLine(result.name)), isImage: isImageLink(url, result) },
    format,
  )
}

/** By its type, or its extension: the links of some hosts have none, and those take pictures. */
export function isImageLink(url: string, { contentType }: Pick<Result, 'contentType'>): boolean {
  if (contentType !== undefined) return contentType.startsWith('image/')
  const extension = URL.canParse(url) ? extname(new URL(url).pathname) : ''
  return extension === '' || /^\.(?:png|apng|jpe?g|gif|webp|avif|svg|bmp|ico|tiff?|hei[cf])$/i.test(extension)
}

export const titleOf = (name: string) => basename(isWebAddress(name) ? new URL(name).pathname : name)
