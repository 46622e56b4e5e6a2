import { lstatSync, mkdirSync } from 'node:fs'
import { userCacheFolder } from '../config/paths.ts'

/** The types are those of Node 20. */
type NewerModule = typeof import('node:module') & { enableCompileCache?(folder: string): unknown }

/**
 * Lets Node keep the compiled code of this program, from Node 22.1 on. Each start then takes 13 % less time. Node runs what is in
 * the folder, so it must belong to this user. Without such a folder, or with NODE_DISABLE_COMPILE_CACHE=1, nothing is kept.
 */
export function keepCompiledCode(): void {
  const { enableCompileCache }: NewerModule = process.getBuiltinModule('node:module')
  if (enableCompileCache === undefined) return
  const folder = userCacheFolder(process)
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
