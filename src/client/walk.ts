import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Every file below a folder, in order. Names that begin with a dot, `node_modules` and symlinks are skipped.
 *
 * @param fail called for each folder that can't be read
 * @param signal stops the walk
 */
export async function* walk(
  folder: string,
  fail: (folder: string, error: unknown) => void,
  signal?: AbortSignal,
): AsyncGenerator<string> {
  const folders = [folder]
  while (!signal?.aborted) {
    const current = folders.pop()
    if (current === undefined) return
    const entries = await readdir(current, { withFileTypes: true }).catch((error: unknown) => {
      fail(current, error)
      return []
    })
    entries.sort((a, b) => (a.name < b.name ? -1 : 1))
    for (const entry of entries) {
      if (entry.name.startsWith('.') || entry.name === 'node_modules') continue
      if (entry.isFile()) yield join(current, entry.name)
    }
    for (const entry of entries.reverse()) {
      if (entry.isDirectory() && !entry.name.startsWith('.') && entry.name !== 'node_modules')
        folders.push(join(current, entry.name))
    }
  }
}
