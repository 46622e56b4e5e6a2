/** Longest file name in UTF-8 bytes; leaves room for a hash and a counter in the 255 that common file systems take. */
const MAX_NAME_BYTES = 200
/** What is kept of each end of a longer name before it is looked at, in characters: putting marks in order takes long. */
const LONGEST_END = 500

// Separators, the characters Windows takes on no disk, C0 and C1 controls, and the marks that reverse or hide text.
const UNUSABLE = /[\u0000-\u001f\u007f-\u009f<>:"/\\|?*\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/gu

// Names Windows keeps for devices, whatever extension follows; hidden ones, which folders here do not take, "." and "..".
const RESERVED = /^(?:(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\.|$)|\.)/i

/** A name without percent-encoding, or as it is where it can't be one that was encoded. */
export function percentDecoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}

/** The last component of a name that may be a whole POSIX or Windows path. */
export function baseName(name: string): string {
  return name.slice(Math.max(name.lastIndexOf('/'), name.lastIndexOf('\\')) + 1)
}

/**
 * A file name every destination can store. A name is never refused: what no disk takes becomes `_`, reserved and
 * hidden names get a `_` in front, long ones are cut before their extension, and none becomes `file` with the
 * extension of its type.
 *
 * @param name as the client sent it; may be a whole path
 * @param extension the extension that fits the bytes, with its dot, or empty
 */
export function cleanFileName(name: string, extension: string): string {
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

/** Leaves out the middle, of which nothing would be left. */
function withoutMiddle(name: string): string {
  return name.length > 2 * LONGEST_END ? name.slice(0, LONGEST_END) + name.slice(-LONGEST_END) : name
}

/** Name and extension with its dot: `a.tar.gz` is `a.tar` and `.gz`; a leading dot or a long tail is no extension. */
export function splitExtension(name: string): [base: string, extension: string] {
  const dot = name.lastIndexOf('.')
  if (dot <= 0 || dot === name.length - 1 || name.length - dot > 16 || /\s/.test(name.slice(dot)))
    return [name, '']
  return [name.slice(0, dot), name.slice(dot)]
}

/** The start of a text that takes at most so many bytes in UTF-8, without half a character at its end. */
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

/** Windows drops dots and blanks at the end of a name. */
function closeEnd(name: string): string {
  return name.replace(/(?<![. ])[. ]+$/, dots => '_'.repeat(dots.length))
}

function cut(name: string): string {
  if (Buffer.byteLength(name) <= MAX_NAME_BYTES) return name
  const [base, extension] = splitExtension(name)
  return closeEnd(cutText(base, MAX_NAME_BYTES - Buffer.byteLength(extension)) + extension)
}
