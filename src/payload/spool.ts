import { randomInt } from 'node:crypto'
import { type FileHandle, mkdir, open, readdir, rmdir, stat, unlink, utimes } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { systemCode } from '../errors.ts'
import { type Held, holdFolder } from '../files/held.ts'
import { makePath } from '../files/make-path.ts'
import { dropOwner, isGone, newOwner, parseOwner } from '../flow/owner.ts'

/** After this time without a change, files of a process on another machine count as abandoned. */
const ABANDONED_MS = 24 * 60 * 60 * 1000
const SIGN_OF_LIFE_MS = 60 * 60 * 1000
/** How often the parents of a directory may be removed while it is made. */
const MOST_TRIES = 100

/** A private directory for temporary files of this process, mode 0700. It is made at the first use. */
export interface Spool {
  readonly directory: string
  /** The disk that it is on, in messages for clients, who must not see the path. Begins a sentence. */
  readonly disk: string
  /** Whether its files become those of the destination, without a copy. Larger payloads are then not kept in memory. */
  readonly isLinked?: boolean
  /**
   * Makes an empty file, mode 0600, open for writing and reading. The caller closes and removes it. Its path is valid for
   * this process and its children, until the spool is closed.
   */
  create(): Promise<{ path: string; file: FileHandle }>
  /**
   * Calls `make` with a new name in the directory. It is called again with another name if the directory was removed. The
   * caller removes what `make` made, even if it fails.
   */
  place<T>(make: (path: string) => Promise<T>): Promise<T>
  /** Whether a path is a file in this directory. */
  holds(path: string): boolean
  /** Removes the directory of this process and everything in it. */
  close(): Promise<void>
}

/** Makes the parents of a spool, and runs `work` in them. */
export type Around = <T>(work: (path: string) => Promise<T>) => Promise<T>

/**
 * Creates a spool. It makes and reads nothing before the first use.
 *
 * @param directory of the spools of all processes. Another process may remove it while it is empty
 * @param around for parents that need special care. Default: each gets mode 0700
 * @param disk see `Spool`
 */
export function createSpool(
  directory: string,
  around: Around = async work => {
    await makePath(directory, 0o700)
    return work(directory)
  },
  disk = 'The disk for temporary files of upload-server',
): Spool {
  const name = newOwner()
  const own = join(directory, name)
  /** Prefix of the file names. Numbers of handles are reused, names are not. */
  const prefix = String(randomInt(2 ** 48 - 1)).padStart(15, '0')
  let ready: Promise<Held> | undefined
  let current: Held | undefined
  /** Closed at the end, because files of a removed directory may still be in use. */
  const opened: Held[] = []
  let alive: NodeJS.Timeout | undefined
  let count = 0
  const underWay = new Set<Promise<unknown>>()

  async function prepare(): Promise<Held> {
    const held = await makeOwn()
    opened.push(held)
    clearInterval(alive)
    alive = setInterval(
      () => void utimes(held.path, new Date(), new Date()).catch(() => {}),
      SIGN_OF_LIFE_MS,
    ).unref()
    return held
  }

  async function makeOwn(): Promise<Held> {
    for (let tries = 1; ; tries++) {
      try {
        return await around(async path => {
          await mkdir(join(path, name), 0o700).catch(error => {
            if (systemCode(error) !== 'EEXIST') throw error
          })
          return holdOwn(join(path, name))
        })
      } catch (error) {
        // The last process that used the parent has removed it.
        if (systemCode(error) !== 'ENOENT' || tries === MOST_TRIES) throw error
      }
    }
  }

  async function prepareOnce(): Promise<Held> {
    ready ??= prepare().catch(error => {
      ready = undefined
      throw error
    })
    current = await ready
    return current
  }

  const newPath = (held: Held) => `${held.path}${sep}${prefix}${++count}`

  async function placeTwice<T>(make: (path: string) => Promise<T>): Promise<T> {
    const held = await prepareOnce()
    try {
      return await make(newPath(held))
    } catch (error) {
      if (systemCode(error) !== 'ENOENT') throw error
    }
    // The directory was removed from outside. It is made again, once.
    if (current === held) ready = undefined
    return make(newPath(await prepareOnce()))
  }

  async function place<T>(make: (path: string) => Promise<T>): Promise<T> {
    const placing = placeTwice(make)
    underWay.add(placing)
    try {
      return await placing
    } finally {
      underWay.delete(placing)
    }
  }

  return {
    directory: own,
    disk,
    create: () => place(async path => ({ path, file: await open(path, 'wx+', 0o600) })),
    place,
    holds: path => current !== undefined && path.startsWith(current.path + sep),
    async close() {
      clearInterval(alive)
      dropOwner(name)
      ready = undefined
      const folders = opened.splice(0)
      for (const folder of folders) await removeFolder(folder, own)
      // Work in progress is not awaited, but keeps the handle, because its number must not be reused.
      void Promise.allSettled(underWay).then(() => Promise.all(folders.map(folder => folder.close())))
    },
  }
}

/**
 * Opens a folder that only this user may write to. The owner of a folder can replace what is in it, so another owner is
 * rejected, unless new files get that owner, too, as on some network file systems.
 *
 * @throws `EACCES` if it belongs to another user
 */
async function holdOwn(path: string): Promise<Held> {
  const folder = await holdFolder(path, 'refuse')
  const user = process.geteuid?.() // Windows has none
  if (user === undefined || user === folder.status.uid) return folder
  const probe = join(folder.path, 'owner')
  try {
    await mkdir(probe)
    const { uid } = await stat(probe)
    await rmdir(probe)
    if (uid === folder.status.uid) return folder
    throw Object.assign(new Error(`EACCES: "${path}" belongs to another user`), { code: 'EACCES' })
  } catch (error) {
    await folder.close()
    throw error
  }
}

/** Removes a folder and the files in it. Subfolders stay, so that this never follows a replaced one elsewhere. */
async function removeFolder(folder: Held, path: string): Promise<void> {
  for (const name of await readdir(folder.path).catch(ignoreOthers)) {
    await unlink(join(folder.path, name)).catch(ignoreOthers)
  }
  await rmdir(path).catch(ignoreOthers)
}

/**
 * Removes the spools that dead processes left in `directory`: of this machine, if the process has ended (or has the PID of
 * this one, as in containers); of other machines, after a day without a change.
 */
export async function sweepSpool(directory: string): Promise<void> {
  const entries = await readdir(directory).catch(() => [])
  for (const entry of entries) {
    const path = join(directory, entry)
    if (!parseOwner(entry)) continue
    const status = await stat(path).catch(() => undefined)
    if (!status || !isGone(entry, Date.now() - status.mtimeMs, ABANDONED_MS)) continue
    const folder = await holdFolder(path, 'refuse').catch(() => undefined)
    if (folder) await removeFolder(folder, path).finally(() => folder.close())
  }
}

/** Ignores errors about files that another process removed or added. */
function ignoreOthers(error: unknown): never[] {
  if (!['ENOENT', 'ENOTDIR', 'EISDIR', 'EPERM', 'ENOTEMPTY', 'EEXIST'].includes(systemCode(error) ?? ''))
    throw error
  return []
}
