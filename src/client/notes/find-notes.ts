import { realpath, stat } from 'node:fs/promises'
import { dirname, isAbsolute, resolve } from 'node:path'
import { messageOf } from '../../errors.ts'
import { fenceOf, findWayOut } from '../../files/way-out.ts'
import { walk } from '../walk.ts'
import type { NamedNote } from './move-pictures.ts'

/** Notes as they were named, then those of folders. */
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
    // A note is written to: in a cloned folder it is somebody else who says where a symlink leads.
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
