/** Decodes percent escapes such as `%41`, and encodes everything else as UTF-8. Keeps a `%` that is not an escape. */
export function percentDecode(text: string): Buffer {
  const bytes = Buffer.from(text)
  if (!text.includes('%')) return bytes
  let length = 0
  for (let i = 0; i < bytes.length; i++) {
    let byte = bytes[i] ?? 0
    if (byte === 0x25) {
      const high = hexDigit(bytes[i + 1])
      const low = hexDigit(bytes[i + 2])
      if (high >= 0 && low >= 0) {
        byte = high * 16 + low
        i += 2
      }
    }
    bytes[length++] = byte
  }
  return bytes.subarray(0, length)
}

/** The value of an ASCII hexadecimal digit; -1 for every other byte. */
function hexDigit(byte = 0): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}
