/** The end of the names of lists of images. Of all files, a client can find only these by their names. */
export const REVIEW_SUFFIX = '.review.json'

/** Maximum length of a file name, UTF-8 bytes. It leaves room for a hash and a counter within the usual 255. */
const MAX_NAME_BYTES = 200
/** Characters that are kept of each end of a longer name before it is cleaned, because Unicode normalization is slow. */
const LONGEST_END = 500

// Separators, characters that Windows does not allow, control characters (C0 and C1), and marks that reverse or hide text.
const UNUSABLE = /[\u0000-\u001f\u007f-\u009f<>:"/\\|?*\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/gu

// Names of Windows devices with any extension, hidden names, "." and "..".
const RESERVED = /^(?:(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\.|$)|\.)/i

// Most names are like this. Cleaning would not change them, but take several times as long.
const PLAIN = /^[\w-]{1,100}\.[a-z\d]{1,15}$/i

/** Percent-decodes a name. A name that is not percent-encoded is returned unchanged. */
export function percentDecoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}

/** The last component of a name, which can be a whole POSIX or Windows path. */
export function baseName(name: string): string {
  return name.slice(Math.max(name.lastIndexOf('/'), name.lastIndexOf('\\')) + 1)
}

/**
 * Makes a file name that every destination can store. No name is rejected: invalid characters become `_`, reserved and
 * hidden names get the prefix `_`, long names are cut before their extension, and an empty name becomes `file` with the
 * extension of its type.
 *
 * @param name as the client sent it. It can be a whole path
 * @param extension the extension for the bytes, with its dot, or empty
 */
export function cleanFileName(name: string, extension: string): string {
  if (PLAIN.test(name) && !RESERVED.test(name)) return name
  let clean = withoutMiddle(baseName(name).trim())
    .toWellFormed()
    .normalize('NFC')
    .replace(UNUSABLE, '_')
    .trim()
  if (clean === '') clean = `file${extension}`
  if (!/^\.+$/.test(clean)) clean = closeEnd(clean)
  if (splitExtension(clean)[1] === '') clean += extension
  if (RESERVED.test(clean)) clean = `_${clean}`
  return cut(clean)
}

/** Drops the middle of a name, which would be cut anyway. */
function withoutMiddle(name: string): string {
  return name.length > 2 * LONGEST_END ? name.slice(0, LONGEST_END) + name.slice(-LONGEST_END) : name
}

/** Name and extension with its dot: `a.tar.gz` is `a.tar` and `.gz`. A name that begins with its only dot, or a long tail, has no extension. */
export function splitExtension(name: string): [base: string, extension: string] {
  const dot = name.lastIndexOf('.')
  if (dot <= 0 || dot === name.length - 1 || name.length - dot > 16 || /\s/.test(name.slice(dot)))
    return [name, '']
  return [name.slice(0, dot), name.slice(dot)]
}

/** Cuts a text to a number of UTF-8 bytes, without splitting a character. */
export function cutText(text: string, bytes: number): string {
  let room = bytes
  let kept = ''
  for (const character of text) {
    room -= Buffer.byteLength(character)
    if (room < 0) break
    kept += character
  }
  return kept.trimEnd()
}

/** Windows drops dots and spaces at the end of a name. */
function closeEnd(name: string): string {
  return name.replace(/(?<![. ])[. ]+$/, dots => '_'.repeat(dots.length))
}

function cut(name: string): string {
  if (Buffer.byteLength(name) <= MAX_NAME_BYTES) return name
  const [base, extension] = splitExtension(name)
  return closeEnd(cutText(base, MAX_NAME_BYTES - Buffer.byteLength(extension)) + extension)
}
