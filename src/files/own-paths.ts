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

/** How long the server's own files are not looked up again, milliseconds. */
const KNOWN_MS = 1000

/**
 * Whether a file belongs to the server itself. Files next to its own are included (`store.db-wal`), and hard links, which
 * are recognised by the identity of the file.
 *
 * @param real with links resolved
 * @param identity of the file at the path, or undefined if there is none
 */
export type OwnCheck = (real: string, identity?: FileIdentity) => Promise<boolean>

/**
 * Looking up all own paths takes longer than opening a small file, so they are looked up once a second at most, and before a
 * file is refused: the inode number of a replaced file may be that of a new one already.
 */
export function createOwnCheck(ownPaths: readonly string[]): OwnCheck {
  let known: Promise<OwnFile[]> | undefined
  let since = 0
  function lookUpAll(): Promise<OwnFile[]> {
    known = Promise.all(ownPaths.map(lookUp))
    since = performance.now()
    return known
  }
  return async (real, identity) => {
    const isAmong = (own: readonly OwnFile[]) =>
      own.some(
        one =>
          isBelowAny(real, [one.real]) ||
          real.startsWith(`${one.real}-`) ||
          (identity !== undefined && one.identity !== undefined && isSameFile(one.identity, identity)),
      )
    if (known === undefined || performance.now() - since > KNOWN_MS) return isAmong(await lookUpAll())
    return isAmong(await known) && isAmong(await lookUpAll())
  }
}

interface OwnFile {
  readonly real: string
  readonly identity: FileIdentity | undefined
}

async function lookUp(path: string): Promise<OwnFile> {
  const real = await realpath(path).catch(() => path)
  return { real, identity: await stat(real).catch(() => undefined) }
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
