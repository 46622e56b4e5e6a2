import { fileURLToPath } from 'node:url'
import { UploadError } from '../errors.ts'
import { SNIFF_BYTES, sniffType } from '../payload/sniff.ts'

/** What the clipboard holds. */
export type ClipboardContent =
  /** The bytes as the program that put them there offers them; `name` has the extension that fits them. */
  | { readonly kind: 'image'; readonly name: string; readonly body: Buffer }
  /** Absolute, not looked at yet: it may not exist. */
  | { readonly kind: 'path'; readonly path: string }
  /** http or https. */
  | { readonly kind: 'url'; readonly url: URL }

/** How the machine writes its paths. */
export type PathStyle = 'posix' | 'windows'

/** More text than this, in bytes, is taken for neither a path nor a URL. */
export const TEXT_BYTES = 256 * 1024

/**
 * Checks the signature of what was offered as a picture.
 *
 * @throws UploadError `source_failed` when the bytes are no picture, `too_large`
 */
export async function toImage(body: Buffer, maxBytes: number): Promise<ClipboardContent> {
  if (body.length > maxBytes) throw imageTooLarge(maxBytes)
  const { contentType, extension } = await sniffType(body.subarray(0, SNIFF_BYTES))
  if (!contentType.startsWith('image/'))
    throw new UploadError(
      'source_failed',
      'The clipboard offers an image, but its data is not an image. Copy the image again.',
    )
  return { kind: 'image', name: `clipboard${extension}`, body }
}

/**
 * Reads text that is one path or URL. A pair of double quotes around it is dropped: Windows copies paths so.
 *
 * @throws UploadError `source_failed` for everything else; the text itself, maybe a password, is not repeated
 */
export function toReference(text: string, style: PathStyle): ClipboardContent {
  if (text.trim() === '') throw emptyClipboard()
  const found = parseReference(text.trim().replace(/^"(.*)"$/, '$1'), style)
  if (found) return found
  throw otherText()
}

/** The first file of a list that a file manager made (`text/uri-list`, RFC 2483 section 5, or GNOME's own form). */
export function firstOfList(list: string, style: PathStyle): ClipboardContent | undefined {
  for (const line of list.split(/[\r\n\0]+/)) {
    const found = parseReference(line.trim(), style)
    if (found) return found
  }
  return undefined
}

function parseReference(text: string, style: PathStyle): ClipboardContent | undefined {
  if (/[\u0000-\u001f\u007f]/.test(text)) return undefined
  if (/^https?:\/\//i.test(text))
    return !/\s/.test(text) && URL.canParse(text) ? { kind: 'url', url: new URL(text) } : undefined
  const path = /^file:\/\//i.test(text) ? pathOfUrl(text, style) : text
  const absolute = style === 'windows' ? /^(?:[a-z]:[\\/]|\\\\[^\\/])/i : /^\//
  return path !== undefined && absolute.test(path) ? { kind: 'path', path } : undefined
}

function pathOfUrl(url: string, style: PathStyle): string | undefined {
  try {
    const path = fileURLToPath(url, { windows: style === 'windows' })
    return path.includes('\0') ? undefined : path
  } catch {
    return undefined // a file of another machine, an encoded separator
  }
}

export function imageTooLarge(maxBytes: number): UploadError {
  return new UploadError(
    'too_large',
    `The image in the clipboard is larger than ${maxBytes} bytes (limits.fileSize).`,
  )
}

export function emptyClipboard(): UploadError {
  return new UploadError(
    'source_failed',
    'The clipboard is empty. Copy an image, or the path or URL of one, and repeat the upload.',
  )
}

export function otherText(): UploadError {
  return new UploadError(
    'source_failed',
    'The clipboard contains text that is neither an absolute path nor a URL. Copy an image, or the path or URL of one.',
  )
}
