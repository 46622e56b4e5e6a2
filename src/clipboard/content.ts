import { fileURLToPath } from 'node:url'
import { UploadError } from '../errors.ts'
import { describeLimit } from '../payload/index.ts'
import { sniffLength, sniffType } from '../payload/sniff.ts'

/** The content of the clipboard. */
export type ClipboardContent =
  /** The bytes of an image. `name` has the extension for them. */
  | { readonly kind: 'image'; readonly name: string; readonly body: Buffer }
  /** Absolute path, not checked yet: it may not exist. */
  | { readonly kind: 'path'; readonly path: string }
  /** http or https. */
  | { readonly kind: 'url'; readonly url: URL }

/** The form of file paths. */
export type PathStyle = 'posix' | 'windows'

/** Maximum length of a path or URL, bytes. Longer text is rejected. */
export const TEXT_BYTES = 256 * 1024

/**
 * Checks that bytes are an image, by their signature.
 *
 * @throws UploadError `source_failed` if the bytes are not an image, `too_large`
 */
export async function toImage(body: Buffer, maxBytes: number): Promise<ClipboardContent> {
  if (body.length > maxBytes) throw imageTooLarge(maxBytes)
  const { contentType, extension } = sniffType(body.subarray(0, sniffLength(body)))
  if (!contentType.startsWith('image/'))
    throw new UploadError(
      'source_failed',
      'The clipboard offers an image, but its data is not an image. Copy the image again.',
    )
  return { kind: 'image', name: `clipboard${extension}`, body }
}

/**
 * Reads text that is one path or URL. A pair of double quotes around it is removed, because Windows adds them when it copies a path.
 *
 * @throws UploadError `source_failed` for any other text, which is not repeated, because it may be a password
 */
export function toReference(text: string, style: PathStyle): ClipboardContent {
  if (text.trim() === '') throw emptyClipboard()
  const found = parseReference(text.trim().replace(/^"(.*)"$/, '$1'), style)
  if (found) return found
  throw otherText()
}

/** The first file of a list that a file manager copied (`text/uri-list`, RFC 2483 section 5, or GNOME's own form). */
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

export const imageTooLarge = (maxBytes: number) =>
  new UploadError('too_large', `The image in the clipboard is larger than ${describeLimit(maxBytes)}.`)

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
