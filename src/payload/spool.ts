import { randomInt } from 'node:crypto'
import { open as openWithCallback } from 'node:fs'
import { mkdir, readdir, rmdir, stat, unlink, utimes } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { promisify } from 'node:util'
import { systemCode } from '../errors.ts'
import { type Held, holdFolder } from '../files/held.ts'
import { makePath } from '../files/make-path.ts'
import { dropOwner, isGone, newOwner, parseOwner } from '../flow/owner.ts'

/** After this long without a sign of life the files of a process on another machine count as abandoned. */
const ABANDONED_MS = 24 * 60 * 60 * 1000
const SIGN_OF_LIFE_MS = 60 * 60 * 1000
/** How often others may remove what is around a directory while it is made. */
const MOST_TRIES = 100

/** Without a `FileHandle`, whose calls take longer. */
const open = promisify(openWithCallback)

/** A private directory for temporary files of this process, mode 0700, made when first used. */
export interface Spool {
  readonly directory: string
  /**
   * A new, empty file, mode 0600, open for writing and reading. Whoever takes it closes and removes it. Its path is good
   * until the spool is closed, for this process and those that it starts.
   */
  create(): Promise<{ path: string; fd: number }>
  /**
   * Has `make` make something under a name in the directory that is new. It may be called a second time, with another
   * name, when somebody removed the directory. Whoever makes something removes it, also when `make` fails.
   */
  place<T>(make: (path: string) => Promise<T>): Promise<T>
  /** Whether a path is that of a file in it. */
  holds(path: string): boolean
  /** Removes the directory of this process and everything in it. */
  close(): Promise<void>
}

/** Makes what is around a spool, and does `work` in it. */
export type Around = <T>(work: (path: string) => Promise<T>) => Promise<T>

/**
 * Nothing is made or read before the first use.
 *
 * @param directory where the spools of all processes lie. Others may remove it when it is empty
 * @param around for where its folders need care; each gets mode 0700 otherwise
 */
export function createSpool(
  directory: string,
  around: Around = async work => {
    await makePath(directory, 0o700)
    return work(directory)
  },
): Spool {
  const name = newOwner()
  const own = join(directory, name)
  /** Begins the names of the files: numbers of handles are given again, names never. */
  const prefix = String(randomInt(2 ** 48 - 1)).padStart(15, '0')
  let ready: Promise<Held> | undefined
  let current: Held | undefined
  /** Closed at the end: others may still be on their way through one that was removed. */
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
        // Whoever was the last to use what is around it has removed it.
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
    // Somebody cleaned up around us: make the directory again, once.
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
    create: () => place(async path => ({ path, fd: await open(path, 'wx+', 0o600) })),
    place,
    holds: path => current !== undefined && path.startsWith(current.path + sep),
    async close() {
      clearInterval(alive)
      dropOwner(name)
      ready = undefined
      const folders = opened.splice(0)
      for (const folder of folders) await removeFolder(folder, own)
      // Whoever is still at work there is not waited for, but keeps the handle: its number must not lead elsewhere.
      void Promise.allSettled(underWay).then(() => Promise.all(folders.map(folder => folder.close())))
    },
  }
}

/**
 * Opens a folder that only this user may write to. One that has another owner is somebody else's, who may exchange what
 * lies in it, unless what is made there gets that owner, too, as on some file systems of other machines.
 *
 * @throws `EACCES` for somebody else's
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

/** Removes a folder of files. What else lies in it stays: nobody can have this walk elsewhere. */
async function removeFolder(folder: Held, path: string): Promise<void> {
  for (const name of await readdir(folder.path).catch(ignoreOthers)) {
    await unlink(join(folder.path, name)).catch(ignoreOthers)
  }
  await rmdir(path).catch(ignoreOthers)
}

/**
 * Removes the spools that ended processes left in `directory`: those of this machine whose process is gone (or has
 * the number of this one, as it happens in containers), those of other machines after a day without a sign of life.
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

/** For what somebody else has removed, or put there. */
function ignoreOthers(error: unknown): never[] {
  if (!['ENOENT', 'ENOTDIR', 'EISDIR', 'EPERM', 'ENOTEMPTY', 'EEXIST'].includes(systemCode(error) ?? ''))
    throw error
  return []
}
