import { realpath, stat } from 'node:fs/promises'
import { dirname, isAbsolute, resolve } from 'node:path'
import { messageOf } from '../../errors.ts'
import { fenceOf, findWayOut } from '../../files/way-out.ts'
import { walk } from '../walk.ts'
import type { NamedNote } from './upload-images.ts'

/** Finds the notes that are named on the command line, or that are in the named folders. */
export async function findNotes(
  names: readonly string[],
  cwd: string,
  fail: (path: string, reason: string) => void,
  signal: AbortSignal,
): Promise<NamedNote[]> {
  const found = new Map<string, NamedNote>()
  for (const name of names) {
    const path = resolve(cwd, name)
    const status = await stat(path).catch(() => undefined)
    // The command writes to notes, and the author of a cloned repository chooses where its symlinks lead.
    const fence = isAbsolute(name) ? undefined : fenceOf(name, cwd)
    const wayOut = status && fence && (await findWayOut(path, await realpath(path), fence))
    if (status === undefined) fail(path, 'the file or folder does not exist')
    else if (wayOut) fail(path, wayOut)
    else if (!status.isDirectory()) found.set(path, { path, folder: dirname(path) })
    else {
      const failed = (folder: string, error: unknown) => fail(folder, messageOf(error))
      for await (const note of walk(path, failed, signal))
        if (/\.(?:md|markdown)$/i.test(note)) found.set(note, { path: note, folder: path })
    }
  }
  return [...found.values()]
}
