import { readFile } from 'node:fs/promises'

/** IDs in the `name` table: family and style. */
const FAMILY = 1
const STYLE = 2

/**
 * Returns the name by which Pango finds a font file, such as "DejaVu Sans Bold". Pango can't be told to use a file: the file is
 * only added to the system's fonts.
 *
 * @see https://learn.microsoft.com/typography/opentype/spec/name
 * @throws Error if it is not a TrueType or OpenType font
 */
export async function readFontName(path: string): Promise<string> {
  const file = await readFile(path)
  try {
    const names = readNames(file)
    const family = names.get(FAMILY)
    const style = names.get(STYLE)
    if (family) return style && style !== 'Regular' ? `${family} ${style}` : family
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
  }
  throw new Error(`"${path}" is not a TrueType or OpenType font`)
}

/** @throws RangeError if the file is truncated */
function readNames(file: Buffer): Map<number, string> {
  const names = new Map<number, string>()
  const start = file.toString('latin1', 0, 4) === 'ttcf' ? file.readUInt32BE(12) : 0
  const tables = file.readUInt16BE(start + 4)
  for (let n = 0; n < tables; n++) {
    const entry = start + 12 + n * 16
    if (file.toString('latin1', entry, entry + 4) !== 'name') continue
    const table = file.readUInt32BE(entry + 8)
    const texts = table + file.readUInt16BE(table + 4)
    for (let i = 0; i < file.readUInt16BE(table + 2); i++) {
      const at = table + 6 + i * 12
      const [platform, language, id] = [0, 4, 6].map(offset => file.readUInt16BE(at + offset))
      // Windows, English (United States), in UTF-16. Every font has this entry.
      if (platform !== 3 || language !== 0x409) continue
      const text = texts + file.readUInt16BE(at + 10)
      names.set(id ?? 0, toText(file.subarray(text, text + file.readUInt16BE(at + 8))))
    }
  }
  return names
}

function toText(utf16: Buffer): string {
  return Buffer.from(utf16).swap16().toString('utf16le')
}
