import { parentOf } from './remote-path.ts'

/** Beyond this the list is begun anew: a key template can make a folder for every file. */
const MOST = 10_000

/** Folders on a server, made when they are needed and then remembered. `S` is a session with that server. */
export interface KnownFolders<S> {
  /**
   * Does `work` in a folder, which is made when it is missing. Where the folder was only remembered, work that fails as
   * if it were gone may give undefined: then the folder is looked for and made again, and the work done once more.
   */
  inFolder<T>(session: S, path: string, work: (isRemembered: boolean) => Promise<T | undefined>): Promise<T>
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

  return {
    async inFolder<T>(session: S, path: string, work: (isRemembered: boolean) => Promise<T | undefined>) {
      if (known.has(path)) {
        const done = await work(true)
        if (done !== undefined) return done
        known.clear()
      }
      await ensure(session, path)
      return (await work(false)) as T
    },
  }
}
