import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Every file below a folder, in order. What begins with a dot and `node_modules` are passed by, links not followed.
 *
 * @param fail hears of folders that can't be read
 * @param signal ends it
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
