import { lstatSync, mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'

/**
 * The folder for compiled code: `$XDG_CACHE_HOME/upload-server` and its equivalents on other systems. The XDG base directory
 * specification requires relative values to be ignored.
 */
export function cacheFolder(
  env: Readonly<Record<string, string | undefined>>,
  platform: NodeJS.Platform,
): string {
  const home = env['HOME'] || homedir()
  if (platform === 'win32')
    return join(env['LOCALAPPDATA'] ?? join(home, 'AppData', 'Local'), 'upload-server', 'cache')
  if (platform === 'darwin') return join(home, 'Library', 'Caches', 'upload-server')
  const xdg = env['XDG_CACHE_HOME']
  return join(xdg && isAbsolute(xdg) ? xdg : join(home, '.cache'), 'upload-server')
}

/** The types are those of Node 20. */
type NewerModule = typeof import('node:module') & { enableCompileCache?(folder: string): unknown }

/**
 * Lets Node keep the compiled code of this program, from Node 22.1 on. Each start then takes 13 % less time. Node runs what is in
 * the folder, so it must belong to this user. Without such a folder, or with NODE_DISABLE_COMPILE_CACHE=1, nothing is kept.
 */
export function keepCompiledCode(): void {
  const { enableCompileCache }: NewerModule = process.getBuiltinModule('node:module')
  if (enableCompileCache === undefined) return
  const folder = cacheFolder(process.env, process.platform)
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const { uid, mode } = lstatSync(folder)
    const user = process.geteuid?.() // Windows has none
    const isOurs = user === undefined || (uid === user && (mode & 0o022) === 0)
    if (isOurs) enableCompileCache(folder)
  } catch {
    // There is no home directory, or it is read-only.
  }
}
