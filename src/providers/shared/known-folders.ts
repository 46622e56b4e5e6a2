import { parentOf } from './remote-path.ts'

/** Maximum number of known folders. Then the list is cleared, because a key template can create a folder for each file. */
const MAX_FOLDERS = 10_000

/** Folders on a server, created on demand and then cached. `S` is a session with the server. */
export interface KnownFolders<S> {
  /**
   * Runs `work` in a folder, which is created if it does not exist. If the folder was only cached, work that fails as if it
   * were missing may return undefined. Then the folder is checked and created again, and the work is repeated once.
   */
  inFolder<T>(session: S, path: string, work: (isCached: boolean) => Promise<T | undefined>): Promise<T>
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
        // A concurrent upload may have created it.
        if (!(await isThere(session, path))) throw error
      }
    }
    if (known.size >= MAX_FOLDERS) known.clear()
    known.add(path)
  }

  return {
    async inFolder<T>(session: S, path: string, work: (isCached: boolean) => Promise<T | undefined>) {
      if (known.has(path)) {
        const done = await work(true)
        if (done !== undefined) return done
        known.clear()
      }
      await ensure(session, path)
      return (await work(false)) as T // the cast is safe: work returns undefined only for a cached folder
    },
  }
}
