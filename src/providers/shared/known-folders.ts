import { parentOf } from './remote-path.ts'

/** Beyond this the list is begun anew: a key template can make a folder for every file. */
const MOST = 10_000

/** Folders on a server, made when they are needed and then remembered. `S` is a session with that server. */
export interface KnownFolders<S> {
  /** Makes a folder and those around it, unless they are there. */
  ensure(session: S, path: string): Promise<void>
  /** Whether it was found or made before. */
  has(path: string): boolean
  /** After it has turned out that one is gone. */
  forget(): void
}

export interface FolderOperations<S> {
  isThere(session: S, path: string): Promise<boolean>
  make(session: S, path: string): Promise<void>
}

export function createKnownFolders<S>({ isThere, make }: FolderOperations<S>): KnownFolders<S> {
  const known = new Set<string>()

  async function ensure(session: S, path: string): Promise<void> {
    if (path === '' || path === '/' || known.has(path)) return
    if (!(await isThere(session, path))) {
      await ensure(session, parentOf(path))
      try {
        await make(session, path)
      } catch (error) {
        // Another put may have been faster.
        if (!(await isThere(session, path))) throw error
      }
    }
    if (known.size >= MOST) known.clear()
    known.add(path)
  }

  return { ensure, has: path => known.has(path), forget: () => known.clear() }
}
