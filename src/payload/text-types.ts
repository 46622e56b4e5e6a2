import type { FileType } from './formats/file-type.ts'

/**
 * Text formats that only the extension tells apart. A browser runs none of them when it opens such a file. The first
 * extension of a type is its usual one.
 */
const BY_EXTENSION: Readonly<Record<string, string>> = {
  '.txt': 'text/plain',
  '.text': 'text/plain',
  '.log': 'text/plain',
  '.css': 'text/css',
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.cjs': 'text/javascript',
  '.json': 'application/json',
  '.map': 'application/json',
  '.geojson': 'application/geo+json',
  '.webmanifest': 'application/manifest+json',
  '.md': 'text/markdown',
  '.markdown': 'text/markdown',
  '.csv': 'text/csv',
  '.tsv': 'text/tab-separated-values',
  '.yaml': 'application/yaml',
  '.yml': 'application/yaml',
  '.toml': 'application/toml',
  '.m3u8': 'application/vnd.apple.mpegurl',
}

/** The type of a text by the extension of its name, undefined for all others. */
export function typeOfText(extension: string): FileType | undefined {
  const lower = extension.toLowerCase()
  const contentType = Object.hasOwn(BY_EXTENSION, lower) ? BY_EXTENSION[lower] : undefined
  return contentType === undefined ? undefined : { contentType, extension: lower }
}

// Control characters but tab, line feed, vertical tab, form feed, carriage return and escape.
const NO_TEXT = /[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/

/** Decodes the beginning of a text: UTF-8, or UTF-16 with a byte order mark. Undefined if it is not text. */
export function readText(bytes: Uint8Array): string | undefined {
  const encoding = isUtf16(bytes) ? (bytes[0] === 0xff ? 'utf-16le' : 'utf-16be') : 'utf-8'
  if (bytes.length === 0 || (encoding === 'utf-8' && bytes.includes(0))) return undefined
  try {
    // stream: a character that is cut at the end is not an error.
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes, { stream: true })
    return NO_TEXT.test(text) ? undefined : text
  } catch {
    return undefined
  }
}

function isUtf16([first, second]: Uint8Array): boolean {
  return (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)
}

const SVG: FileType = { contentType: 'image/svg+xml', extension: '.svg' }
const HTML: FileType = { contentType: 'text/html', extension: '.html' }
const XML: FileType = { contentType: 'application/xml', extension: '.xml' }

const SVG_START = /^<(?:!doctype\s+)?(?:[\w.-]+:)?svg[\s>/[]/i
// Tags by which browsers recognise HTML (WHATWG MIME Sniffing, section 7.1).
const HTML_START = /^<(?:!doctype html|html|head|body|script|iframe)(?:[\s>]|$)/i
/** Such tags also begin other texts, such as Markdown. */
const HTML_PART = /^<(?:h1|div|font|table|a|style|title|b|br|p)(?:[\s>]|$)/i
const SPACE = /[\s\u00a0\ufeff]*/y

export interface Markup {
  readonly type: FileType
  /** Whether other texts begin like this, too, so that the extension decides if it is that of a text. */
  readonly isGuess: boolean
}

/** `<`, white space or a byte order mark. Other files are not markup. */
export function mayBeMarkup(bytes: Uint8Array): boolean {
  const [first = 0, second] = bytes
  return (
    /[<\s\u00a0]/.test(String.fromCharCode(first)) || (first === 0xef && second === 0xbb) || isUtf16(bytes)
  )
}

/** Recognises SVG, HTML and XML by what follows their comments and declarations. */
export function findMarkup(source: string): Markup | undefined {
  let at = skipSpace(source, source.startsWith('\u00ef\u00bb\u00bf') ? 3 : 0)
  if (source[at] !== '<') return undefined
  const isXml = source.startsWith('<?xml', at)
  for (;;) {
    const isComment = source.startsWith('<!--', at)
    if (!isComment && !source.startsWith('<?', at)) break
    const [start, end] = isComment ? [4, '-->'] : [2, '?>']
    const closed = source.indexOf(end, at + start)
    if (closed < 0) return isXml ? known(XML) : isComment ? { type: HTML, isGuess: true } : undefined
    at = skipSpace(source, closed + end.length)
  }
  const root = source.slice(at, at + 100)
  if (SVG_START.test(root)) return known(SVG)
  if (HTML_START.test(root)) return known(HTML)
  if (HTML_PART.test(root)) return { type: HTML, isGuess: !isXml }
  return isXml ? known(XML) : undefined
}

const known = (type: FileType): Markup => ({ type, isGuess: false })

function skipSpace(source: string, from: number): number {
  SPACE.lastIndex = from
  SPACE.test(source)
  return SPACE.lastIndex
}
