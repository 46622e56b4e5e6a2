import { realpath, stat } from 'node:fs/promises'
import { sep } from 'node:path'

/** Identifies a file on this machine. */
export interface FileIdentity {
  readonly dev: number
  readonly ino: number
}

/** Whether two names lead to the same file. */
export function isSameFile(a: FileIdentity, b: FileIdentity): boolean {
  return a.dev === b.dev && a.ino === b.ino
}

/** Whether a real path is one of these folders, or below one. */
export function isBelowAny(path: string, trees: readonly string[]): boolean {
  return trees.some(tree => path === tree || path.startsWith(tree.endsWith(sep) ? tree : tree + sep))
}

/**
 * Whether a file belongs to the server itself. Files next to its own are included (`store.db-wal`), and hard links, which
 * are recognised by the identity of the file.
 *
 * @param real with links resolved
 * @param identity of the file at the path, or undefined if there is none
 */
export async function isOwnPath(
  real: string,
  identity: FileIdentity | undefined,
  ownPaths: readonly string[],
): Promise<boolean> {
  for (const own of ownPaths) {
    const realOwn = await realpath(own).catch(() => own)
    if (isBelowAny(real, [realOwn]) || real.startsWith(`${realOwn}-`)) return true
    const found = identity && (await stat(realOwn).catch(() => undefined))
    if (identity && found && isSameFile(found, identity)) return true
  }
  return false
}

/** The server's own paths in a folder. */
export async function ownPathsIn(folder: string, ownPaths: readonly string[]): Promise<string[]> {
  const real = (path: string) => realpath(path).catch(() => path)
  const realFolder = await real(folder)
  const inside = await Promise.all(
    ownPaths.map(async own => isBelowAny(own, [folder]) || isBelowAny(await real(own), [realFolder])),
  )
  return ownPaths.filter((_, index) => inside[index])
}
