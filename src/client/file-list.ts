import { isUtf8 } from 'node:buffer'
import { resolve } from 'node:path'
import { describeFileError, systemCode } from '../errors.ts'
import { oneLine } from '../safe-text.ts'
import type { Context } from './context.ts'
import { readAtMost, readFileAtMost } from './read-at-most.ts'

/** Maximum size of a list, bytes. */
const MAX_BYTES = 64 * 1024 * 1024

/** PowerShell 5 writes UTF-16 unless told otherwise. Its NUL bytes would separate single characters. */
const UTF_16_MARKS = ['fffe', 'feff']
const UTF_8_MARK = '\ufeff'

/**
 * Reads the names of files from a list. They are separated by NUL if there is one in the list, as `find -print0` writes it,
 * otherwise by line breaks.
 *
 * @param file of the list, or `-` for standard input
 * @throws Error that names the list and what is wrong with it
 */
export async function readFileList(
  file: string,
  { cwd, stdin }: Pick<Context, 'cwd' | 'stdin'>,
): Promise<string[]> {
  const isFile = file !== '-'
  const shown = isFile ? `"${oneLine(file)}" (--files-from)` : 'the list on standard input'
  const fail = (reason: string) => new Error(`Could not read ${shown}: ${reason}.`)
  const read = isFile ? readFileAtMost(resolve(cwd, file), MAX_BYTES) : readAtMost(stdin, MAX_BYTES)
  const bytes = await read.catch(error => {
    throw fail(reasonOf(error))
  })
  if (bytes === undefined) throw fail(`it is larger than ${MAX_BYTES / 1024 / 1024} MiB`)
  if (UTF_16_MARKS.includes(bytes.subarray(0, 2).toString('hex')))
    throw fail('it is encoded in UTF-16. Save it as UTF-8')
  // A pipe from `find` may have single names in another encoding. They fail one by one.
  if (isFile && !isUtf8(bytes)) throw fail('it is not a text file in UTF-8')
  const text = bytes.toString('utf8')
  const names = text.startsWith(UTF_8_MARK) ? text.slice(1) : text
  return names.split(names.includes('\0') ? '\0' : /\r?\n/).filter(name => name !== '')
}

function reasonOf(error: unknown): string {
  const reason = describeFileError(error)
  return systemCode(error) === 'EISDIR' ? `${reason}. To upload its files, pass it as an argument` : reason
}
