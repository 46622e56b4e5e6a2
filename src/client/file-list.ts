import { decodeText } from '../decode-text.ts'
import { oneLine } from '../safe-text.ts'
import type { Context } from './context.ts'
import { readNamed } from './read-at-most.ts'

/** Maximum size of a list. */
const MAX_MIB = 64

/**
 * Reads the names of files from a list. They are separated by NUL if there is one in the list, as `find -print0` writes it,
 * otherwise by line breaks.
 *
 * @param file of the list, or `-` for standard input
 * @throws Error that names the list and what is wrong with it
 */
export async function readFileList(file: string, context: Pick<Context, 'cwd' | 'stdin'>): Promise<string[]> {
  const shown = file === '-' ? 'the list on standard input' : `"${oneLine(file)}" (--files-from)`
  const names = decodeText(await readNamed(file, context, MAX_MIB, shown))
  // A pipe from `find` may have single names in another encoding. They fail one by one.
  if (file !== '-' && names.includes('\ufffd'))
    throw new Error(`Could not read ${shown}: it is not a text file in UTF-8.`)
  return names.split(names.includes('\0') ? '\0' : /\r?\n/).filter(name => name !== '')
}
