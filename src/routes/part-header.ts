import { isAscii } from 'node:buffer'
import { TextDecoder } from 'node:util'
import { UploadError } from '../errors.ts'
import { baseName } from '../payload/file-name.ts'

/** Description of one form part, from its headers. */
export interface PartHeader {
  /** It has a file name, even an empty one, or a content type other than text/plain. */
  readonly isFile: boolean
  /** Name of the form's field; empty when there is none. */
  readonly field: string
  /** Last component of the file name, decoded, not yet cleaned; empty when there is none. */
  readonly fileName: string
  /** Lower case, without parameters; empty when there is none. */
  readonly contentType: string
  /** `filename=""`: the empty input of a browser when no byte follows, else a file without a name. */
  readonly mayBeEmptyInput: boolean
}

/**
 * Reads the header lines of a form part as liberally as clients write them: nothing in them is a reason to lose it.
 * Throws UploadError `invalid_request` for a file in a transfer encoding that changes its bytes and for a form within the form.
 */
export function parsePartHeader(block: Buffer): PartHeader {
  const headers = readHeaders(isAscii(block) ? block.toString('latin1') : decodeText(block, 'utf-8'))
  const contentType = headers.get('content-type')?.split(';')[0]?.trim().toLowerCase() ?? ''
  const parameters = readParameters(headers.get('content-disposition') ?? '')
  const name = readFileName(parameters)
  const isFile = name !== undefined || !['', 'text/plain'].includes(contentType)
  const fileName = baseName(name ?? '')
  if (name === undefined) refuseNestedForm(contentType)
  const encoding = headers.get('content-transfer-encoding')
  if (isFile && encoding !== undefined) refuseEncoding(encoding, fileName)
  return { isFile, field: parameters.get('name') ?? '', fileName, contentType, mayBeEmptyInput: name === '' }
}

function refuseEncoding(encoding: string, fileName: string): void {
  const [refused] = /^(?:base64|quoted-printable)\b/i.exec(encoding) ?? []
  if (refused === undefined) return
  throw new UploadError(
    'invalid_request',
    `The form part "${fileName}" has "Content-Transfer-Encoding: ${refused}", which forms no longer use ` +
      '(RFC 7578 section 4.7). Send the unencoded bytes of the file.',
  )
}

/** Several files in one part (RFC 7578 section 4.3 took this back) would be stored as one unreadable file. */
function refuseNestedForm(contentType: string): void {
  if (contentType !== 'multipart/mixed') return
  throw new UploadError(
    'invalid_request',
    'A part of the form is a form itself ("multipart/mixed"). Give each file a part of its own, for example: ' +
      'curl -F file=@1.png -F file=@2.png.',
  )
}

/** Headers by lower-case name, folded lines joined; of several with one name the first counts. */
function readHeaders(block: string): Map<string, string> {
  const headers = new Map<string, string>()
  for (const line of block.replace(/\r?\n[ \t]+/g, ' ').split(/\r?\n/)) {
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(colon, 0)).trim().toLowerCase()
    if (!headers.has(name)) headers.set(name, line.slice(colon + 1).trim())
  }
  return headers
}

// A quote ends a value only where the line ends or another parameter begins, so raw quotes and semicolons stay in it.
// After a backslash it does so only at the end of the line or before a file name (`name="a\"; filename="b.png"`).
const QUOTED_END = /"(?=[\s;]*(?:$|filename\*?\s*=))|(?<!\\)"(?=\s*;\s*[\w*-]+\s*=)/gi
const PLAIN_END = /;(?=\s*(?:$|[\w*-]+\s*=))/g

/** By lower-case name, without the quotes around them but not unescaped. */
function readParameters(disposition: string): Map<string, string> {
  const parameters = new Map<string, string>()
  const begin = /(?:^|[;\s])([\w*-]+)\s*=\s*/g
  for (let match = begin.exec(disposition); match; match = begin.exec(disposition)) {
    const name = match[1]?.toLowerCase() ?? ''
    const isQuoted = disposition[begin.lastIndex] === '"'
    const start = begin.lastIndex + (isQuoted ? 1 : 0)
    const end = searchFrom(disposition, isQuoted ? QUOTED_END : PLAIN_END, start)
    const value = disposition.slice(start, end)
    if (!parameters.has(name)) parameters.set(name, isQuoted ? value : value.trim())
    begin.lastIndex = isQuoted ? end + 1 : end
  }
  return parameters
}

function searchFrom(text: string, pattern: RegExp, start: number): number {
  pattern.lastIndex = start
  return pattern.exec(text)?.index ?? text.length
}

/** undefined: there is no file name; empty: there is one, but it is empty. */
function readFileName(parameters: Map<string, string>): string | undefined {
  const extended = parameters.get('filename*') ?? joinPieces(parameters)
  const name = extended === undefined ? undefined : decodeExtended(extended)
  const plain = parameters.get('filename')
  return name || plain === undefined ? name : decodeWords(plain.replace(/\\"|%22|%0[AD]/g, unescapeName))
}

/** What `FormData` writes for the characters that end a name or a line (HTML, "multipart/form-data encoding algorithm"). */
const unescapeName = (escaped: string) => (escaped === '%0A' ? '\n' : escaped === '%0D' ? '\r' : '"')

/** A name in pieces, `filename*0*=…; filename*1=…` (RFC 2231 section 3). */
function joinPieces(parameters: Map<string, string>): string | undefined {
  let joined: string | undefined
  for (let i = 0; ; i++) {
    const piece = parameters.get(`filename*${i}*`) ?? parameters.get(`filename*${i}`)
    if (piece === undefined) return joined
    joined = (joined ?? '') + piece
  }
}

/** `UTF-8''na%C3%AFve.png` (RFC 8187); anything but an escape is kept. */
function decodeExtended(value: string): string {
  const [prefix, charset = 'utf-8'] = /^([\w.:-]*)'[\w-]*'/.exec(value) ?? ['']
  return decodeText(decodeBytes(value.slice(prefix.length), '%'), charset)
}

const ENCODED_WORD = /=\?([\w.:-]+)(?:\*[\w-]*)?\?(?:b\?([\w+/=]*)|q\?([ ->@-~]*))\?=/gi

/** Most encoded words of a name that are decoded. One has up to 75 characters, a file name up to 255 bytes. */
const MOST_WORDS = 30

/** `=?utf-8?B?5Zu+?=` and `=?iso-8859-1?Q?=E9t=E9?=` (RFC 2047), also amid other text. */
function decodeWords(text: string): string {
  let words = 0
  return text
    .replace(/\?=\s+=\?/g, '?==?')
    .replace(ENCODED_WORD, (word, charset: string, base64: string | undefined, quoted: string = '') => {
      if (++words > MOST_WORDS) return word
      const bytes =
        base64 === undefined ? decodeBytes(quoted.replaceAll('_', ' '), '=') : Buffer.from(base64, 'base64')
      return decodeText(bytes, charset)
    })
}

function decodeBytes(text: string, sign: '%' | '='): Buffer {
  const escapes = new RegExp(`${sign}([0-9a-f]{2})`, 'gi')
  const bytes = Buffer.from(text).toString('latin1')
  const decoded = bytes.replace(escapes, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(decoded, 'latin1')
}

/** By label in lower case, of which there are few. Making one takes as long as decoding about 100 lines. */
const decoders = new Map<string, TextDecoder>()

function decoderOf(charset: string): TextDecoder {
  const label = charset.toLowerCase()
  const decoder = decoders.get(label) ?? new TextDecoder(label, { fatal: true, ignoreBOM: true })
  decoders.set(label, decoder)
  return decoder
}

/** Never fails: what does not fit its character set is tried as UTF-8, then read as Latin-1. */
function decodeText(bytes: Uint8Array, charset: string): string {
  for (const label of [charset, 'utf-8']) {
    try {
      return decoderOf(label).decode(bytes)
    } catch {
      // An unknown character set, or bytes that it does not have.
    }
  }
  return Buffer.from(bytes).toString('latin1')
}
