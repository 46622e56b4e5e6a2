import { closeSync, constants, openSync, readlinkSync, type Stats } from 'node:fs'
import { type FileHandle, lstat, open, realpath } from 'node:fs/promises'
import { once } from '../flow/once.ts'
import { isSameFile } from './own-paths.ts'

/**
 * A file or folder that is kept open. Where others may write, a path can lead elsewhere at any moment. An open handle
 * always leads to what was checked.
 */
export interface Held {
  /** Undefined for folders on Windows. */
  readonly handle: FileHandle | undefined
  /**
   * Path to the open file or folder, even after a rename, also in child processes. On systems other than Linux it is
   * `real`, and leads to what that path names now.
   */
  readonly path: string
  /** Its path when it was opened, with symlinks resolved. */
  readonly real: string
  readonly status: Stats
  close(): Promise<void>
}

// Opening must not wait for the other end of a FIFO, or acquire a terminal. Not all systems have all flags.
const { O_RDONLY, O_NONBLOCK = 0, O_NOCTTY = 0, O_NOFOLLOW = 0, O_DIRECTORY = 0 } = constants
const FLAGS = O_RDONLY | O_NONBLOCK | O_NOCTTY

/** The end of a path in /proc if the file has been removed. */
const DELETED = / \(deleted\)$/

/** A file that is kept open. */
export type HeldFile = Held & { readonly handle: FileHandle }

/**
 * Opens a path for reading. Its last component must not be a symlink.
 *
 * @throws an error of the system; `ELOOP` for a symlink, `ESTALE` if something was replaced at the same time
 */
export async function hold(path: string): Promise<HeldFile> {
  const handle = await open(path, FLAGS | O_NOFOLLOW)
  return { ...(await held(path, handle)), handle }
}

/**
 * Opens a folder. A symlink is rejected, or followed; `real` is then its target.
 *
 * @throws an error of the system; `ENOTDIR` if it is not a folder, `ENOENT` also if it was removed at the same time
 */
export async function holdFolder(path: string, links: 'follow' | 'refuse'): Promise<Held> {
  const flags = FLAGS | O_DIRECTORY | (links === 'refuse' ? O_NOFOLLOW : 0)
  const folder = await held(path, process.platform === 'win32' ? undefined : await open(path, flags))
  if (folder.status.isDirectory() && folder.status.nlink > 0) return folder
  await folder.close()
  const code = folder.status.isDirectory() ? 'ENOENT' : 'ENOTDIR'
  throw Object.assign(new Error(`${code}: "${path}" is not a folder`), { code })
}

async function held(path: string, handle: FileHandle | undefined): Promise<Held> {
  try {
    const handles = await findHandles()
    if (handle === undefined || handles === undefined) return await heldByName(path, handle)
    const link = `${handles}/${handle.fd}`
    // The name is read after the check: in the other order, a file could be renamed to a name that looks removed.
    const found = readlinkSync(link) // of /proc, so it waits for no disk
    const status = await handle.stat()
    return {
      handle,
      path: link,
      real: status.nlink === 0 ? found.replace(DELETED, '') : found,
      status,
      close: () => handle.close(),
    }
  } catch (error) {
    await handle?.close()
    throw error
  }
}

/** On other systems, only the paths can be compared again. A replacement that is undone in time goes unnoticed. */
async function heldByName(path: string, handle: FileHandle | undefined): Promise<Held> {
  const real = await realpath(path)
  const status = await lstat(real)
  const isSame = handle === undefined || isSameFile(await handle.stat(), status)
  if (!isSame || (await realpath(path)) !== real || (await realpath(real)) !== real)
    throw Object.assign(new Error(`ESTALE: "${path}" was replaced while it was being opened`), {
      code: 'ESTALE',
    })
  return {
    handle,
    path: real,
    real,
    status,
    close: async () => handle?.close(),
  }
}

/**
 * The folder in which Linux lists the open files of this process by number. Undefined on other systems, and where it is
 * hidden. A path below such a number is resolved in the open folder.
 */
const findHandles = once(async (): Promise<string | undefined> => {
  if (process.platform !== 'linux') return undefined
  const folder = openSync('/', O_RDONLY | O_DIRECTORY)
  try {
    return [`/proc/${process.pid}/fd`, '/proc/self/fd'].find(handles => {
      try {
        return readlinkSync(`${handles}/${folder}`) === '/'
      } catch {
        return false
      }
    })
  } finally {
    closeSync(folder)
  }
})
