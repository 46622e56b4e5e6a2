import { Problem } from '../../problem.ts'
import { checkNames } from '../shared/remote-path.ts'

/** Maximum length of a name on common file systems, in UTF-8 bytes. */
const MAX_NAME_BYTES = 255

/** Matches reserved device names of Windows, with any extension. */
const WINDOWS_DEVICE = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])[ .]*(?:\.|$)/i
const WINDOWS_CHARACTER = /[<>:"|?*]/

/**
 * Splits an object key into the names of its folders, outermost first, and its file name. It rejects names that the file
 * system would change, and never corrects a name.
 *
 * @throws Problem
 */
export function splitKey(
  key: string,
  platform: string = process.platform,
): { parents: string[]; file: string } {
  const names = checkNames(key).split('/')
  const fault = names.map(name => findFault(name, platform)).find(found => found !== undefined)
  if (fault !== undefined)
    throw new Problem(`its object key can't be used in a folder: ${fault}`, {
      advice: 'Change the key template or the file name.',
    })
  return { parents: names.slice(0, -1), file: names.at(-1) ?? '' }
}

function findFault(name: string, platform: string): string | undefined {
  if (Buffer.byteLength(name) > MAX_NAME_BYTES)
    return `a file or folder name in it is longer than ${MAX_NAME_BYTES} bytes`
  if (platform !== 'win32') return undefined
  if (WINDOWS_DEVICE.test(name)) return `"${name}" is a reserved device name on Windows`
  if (WINDOWS_CHARACTER.test(name)) return `"${name}" contains a character that is not allowed on Windows`
  if (/[. ]$/.test(name)) return `"${name}" ends with a dot or a space, which Windows removes`
  return undefined
}
