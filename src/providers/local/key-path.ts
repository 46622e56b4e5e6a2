import { findFileFault } from '../shared/check-key.ts'

/** Maximum length of a name on common file systems, in UTF-8 bytes. */
const MAX_NAME_BYTES = 255

/** Matches reserved device names of Windows, with any extension. */
const WINDOWS_DEVICE = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])[ .]*(?:\.|$)/i
const WINDOWS_CHARACTER = /[<>:"|?*]/

/** Returns why an object key can't be a path: a name is hidden, or the file system would change it. Undefined if it can. */
export function findPathFault(key: string, platform: string = process.platform): string | undefined {
  const hidden = findFileFault(key)
  if (hidden !== undefined) return hidden
  for (const name of key.split('/')) {
    if (Buffer.byteLength(name) > MAX_NAME_BYTES)
      return `a file or folder name in it is longer than ${MAX_NAME_BYTES} bytes`
    if (platform !== 'win32') continue
    if (WINDOWS_DEVICE.test(name)) return `"${name}" is a reserved device name on Windows`
    if (WINDOWS_CHARACTER.test(name)) return `"${name}" contains a character that is not allowed on Windows`
    if (/[. ]$/.test(name)) return `"${name}" ends with a dot or a space, which Windows removes`
  }
  return undefined
}
