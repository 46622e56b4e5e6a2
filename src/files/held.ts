import { closeSync, constants, openSync, readlinkSync, type Stats } from 'node:fs'
import { type FileHandle, lstat, open, readlink, realpath } from 'node:fs/promises'
import { once } from '../flow/once.ts'
import { isSameFile } from './own-paths.ts'

/**
 * A file or folder that is held open. Where others may write, a path leads elsewhere from one moment to the next; what
 * is held stays what was looked at.
 */
export interface Held {
  /** Missing for folders of Windows. */
  readonly handle: FileHandle | undefined
  /**
   * Leads to what is held, whatever becomes of the names around it, also in processes that this one starts. On systems
   * other than Linux it is `real`, and leads to what lies there now.
   */
  readonly path: string
  /** Where it lay when it was opened, links resolved. */
  readonly real: string
  readonly status: Stats
  /** Whether it still lies there. */
  isInPlace(): Promise<boolean>
  close(): Promise<void>
}

// Opening must not wait for the other end of a FIFO, nor take a terminal. Not all systems have all of them.
const { O_RDONLY, O_NONBLOCK = 0, O_NOCTTY = 0, O_NOFOLLOW = 0, O_DIRECTORY = 0 } = constants
const FLAGS = O_RDONLY | O_NONBLOCK | O_NOCTTY

/** How Linux ends the path of what has no name any more. */
const DELETED = / \(deleted\)$/

/** A file that is held. */
export type HeldFile = Held & { readonly handle: FileHandle }

/**
 * Opens what lies at a path for reading. The last name must be no link.
 *
 * @throws an error of the system; `ELOOP` for a link, `ESTALE` when something was exchanged meanwhile
 */
export async function hold(path: string): Promise<HeldFile> {
  const handle = await open(path, FLAGS | O_NOFOLLOW)
  return { ...(await held(path, handle)), handle }
}

/**
 * Opens a folder. A link is followed, and `real` says where to, or refused.
 *
 * @throws an error of the system; `ENOTDIR` for what is no folder, `ENOENT`, too, when it was removed meanwhile
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
    // What still has a name afterwards had it then: the other way round, a name that Linux marks passes for a real one.
    const found = await readlink(link)
    const status = await handle.stat()
    return {
      handle,
      path: link,
      real: status.nlink === 0 ? found.replace(DELETED, '') : found,
      status,
      isInPlace: async () => (await readlink(link)) === found,
      close: () => handle.close(),
    }
  } catch (error) {
    await handle?.close()
    throw error
  }
}

/** Elsewhere only the names can be asked again: whoever exchanges them back in time is not noticed. */
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
    isInPlace: async () => (await realpath(real).catch(() => undefined)) === real,
    close: async () => handle?.close(),
  }
}

/**
 * The folder in which Linux shows the open files of this process by their numbers; undefined on other systems and where
 * it is hidden. A name behind such a number is looked up in what is open.
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
