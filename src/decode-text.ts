/** The text of a file in UTF-8, or in UTF-16 with a byte order mark, as Notepad and Windows PowerShell write it. */
export function decodeText(bytes: Uint8Array): string {
  const [first, second] = bytes
  const isLittle = first === 0xff && second === 0xfe
  const isBig = first === 0xfe && second === 0xff
  // Removes the byte order mark, also that of UTF-8.
  return new TextDecoder(isLittle ? 'utf-16le' : isBig ? 'utf-16be' : 'utf-8').decode(bytes)
}
