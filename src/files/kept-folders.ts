import { type Stats, stat } from 'node:fs'
import { promisify } from 'node:util'
import type { Held } from './held.ts'
import { isSameFile } from './own-paths.ts'

/** How long a folder is kept open, milliseconds. Later, another file system may have been mounted there. */
const HELD_MS = 1000
/** Maximum number of open folders in addition to those in use. A key template can make one for every file. */
const MOST_HELD = 8

const statusOf = promisify(stat) as (path: string) => Promise<Stats>

/** An open folder with several users. It is closed when the last one is done. */
export interface Kept {
  readonly folder: Held
  readonly since: number
  users: number
  isDropped: boolean
}

/**
 * Keeps folders open that are used again and again. A folder that is found or kept must be used at once: it can be closed
 * as soon as the caller awaits something else.
 */
export function createKeptFolders() {
  const kept = new Map<string, Kept>()
  let isClosed = false

  const isYoung = ({ since }: Kept) => performance.now() - since <= HELD_MS

  async function use<T>(one: Kept, work: (folder: Held) => Promise<T>): Promise<T> {
    one.users++
    try {
      return await work(one.folder)
    } finally {
      one.users--
      await closeUnused(one)
    }
  }

  async function closeUnused(one: Kept): Promise<void> {
    if (one.isDropped && one.users === 0) await one.folder.close()
  }

  async function drop(path: string, one: Kept): Promise<void> {
    if (one.isDropped) return
    one.isDropped = true
    if (kept.get(path) === one) kept.delete(path)
    await closeUnused(one)
  }

  return {
    use,
    /** Two callers can open one folder at once, and one can finish after the end. No folder stays open forever. */
    keep(path: string, folder: Held): Kept {
      const one: Kept = { folder, since: performance.now(), users: 0, isDropped: isClosed }
      if (isClosed) return one
      const before = kept.get(path)
      if (before) drop(path, before).catch(() => {})
      kept.set(path, one)
      const [oldest] = kept
      if (oldest && kept.size > MOST_HELD) drop(...oldest).catch(() => {})
      return one
    },
    /** The open folder of a path, if the path still leads there. */
    async find(path: string): Promise<Kept | undefined> {
      const one = kept.get(path)
      if (one === undefined) return undefined
      // The open folder keeps its inode, so no other folder can have it.
      const isThere =
        isYoung(one) &&
        (await use(one, async ({ status }) => isSameFile(await statusOf(path), status)).catch(() => false))
      if (isThere && !one.isDropped) return one
      await drop(path, one)
      return undefined
    },
    async close(): Promise<void> {
      isClosed = true
      for (const [path, one] of kept) await drop(path, one)
    },
  }
}
