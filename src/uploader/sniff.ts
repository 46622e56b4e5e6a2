import { once } from '../once.ts'

const loadFileType = once(() => import('file-type'))

/** What the bytes of a file say it is. */
export interface FileType {
  /** MIME type; `application/octet-stream` when the bytes say nothing. */
  readonly contentType: string
  /** Its usual extension with the dot; empty when unknown. */
  readonly extension: string
}

/** Bytes from the start of a file that `sniffType` wants to see. */
export const SNIFF_BYTES = 4100

const UNKNOWN: FileType = { contentType: 'application/octet-stream', extension: '' }
const SVG: FileType = { contentType: 'image/svg+xml', extension: '.svg' }
const HTML: FileType = { contentType: 'text/html', extension: '.html' }
const XML: FileType = { contentType: 'application/xml', extension: '.xml' }
const TIFF: FileType = { contentType: 'image/tiff', extension: '.tif' }
const TEXT: FileType = { contentType: 'text/plain', extension: '.txt' }

// Tags that make a browser take a text for HTML (WHATWG MIME Sniffing, section 7.1).
const HTML_START =
  /^<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p)(?:[\s>]|$)/i

/** Reads the type of a file from its first bytes; neither names nor labels count. */
export async function sniffType(head: Uint8Array): Promise<FileType> {
  const markup = sniffMarkup(head)
  if (markup) return markup
  const { fileTypeFromBuffer } = await loadFileType()
  const found = await fileTypeFromBuffer(head)
  if (found) return { contentType: found.mime, extension: `.${found.ext}` }
  if (isTiff(head)) return TIFF
  return looksLikeText(head) ? TEXT : UNKNOWN
}

/** What says more of it may lie at its end, where file-type would look. */
function isTiff(head: Uint8Array): boolean {
  return ['49492a00', '4d4d002a'].includes(Buffer.from(head.subarray(0, 4)).toString('hex'))
}

/** `<`, white space or the first byte of a byte order mark: most pictures need not be looked at as text. */
function mayBeMarkup([first = 0]: Uint8Array): boolean {
  return first === 0x3c || first <= 0x20 || first === 0xa0 || first === 0xef
}

function sniffMarkup(head: Uint8Array): FileType | undefined {
  if (!mayBeMarkup(head)) return undefined
  let text = Buffer.from(head.buffer, head.byteOffset, head.length).toString('latin1')
  text = text.replace(/^\u00ef\u00bb\u00bf/, '').trimStart()
  if (!text.startsWith('<')) return undefined
  const xml = text.startsWith('<?xml')
  text = text.replace(/^<\?xml[^>]*>\s*/, '')
  for (let before = ''; before !== text; ) {
    before = text
    text = text.replace(
      /^(?:<!--[\s\S]*?-->|<!doctype svg[^>[]*(?:\[[\s\S]*?\])?[^>]*>|<\?[\s\S]*?\?>)\s*/i,
      '',
    )
  }
  if (/^<(?:[\w-]+:)?svg[\s>/]/i.test(text)) return SVG
  if (HTML_START.test(text) || text.startsWith('<!--')) return HTML
  return xml ? XML : undefined
}

function looksLikeText(head: Uint8Array): boolean {
  if (head.length === 0 || head.includes(0)) return false
  try {
    // stream: a character cut in two at the end of the head is no error.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(head, { stream: true })
    return !/[\u0001-\u0008\u000e-\u001a\u001c-\u001f]/.test(text)
  } catch {
    return false
  }
}
