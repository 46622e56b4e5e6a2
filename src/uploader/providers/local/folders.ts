import { realpath } from 'node:fs'
import { chmod, mkdir, open, stat } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, sep } from 'node:path'
import { systemCode, UploadError } from '../../../errors.ts'
import { makePath } from '../../make-path.ts'

const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG'])
/** What file systems answer that have no permissions, or cannot sync a folder. */
const UNSUPPORTED = new Set(['EPERM', 'ENOTSUP', 'ENOSYS', 'EINVAL'])

/** Folders below one directory, that no link leads out of. Paths given are absolute and lie below it by their names. */
export interface Folders {
  /**
   * The real path of what is there, links resolved; undefined when nothing is.
   * @throws UploadError `delivery_failed` when a link leads out of the directory or to something hidden in it
   */
  find(path: string): Promise<string | undefined>
  /** The real path of a folder, which is made with all around it when it is missing. `mode` is for the innermost. */
  make(path: string, mode?: number): Promise<string>
}

/**
 * The links are resolved for each call, so that one put into the directory later leads nowhere, either. That costs 10 to
 * 20 microseconds, a tenth of a put of 100 KB at most.
 *
 * @param durable whether a new folder is on the disk before `make` is done
 */
export function createFolders(directory: string, folderMode: number, durable: boolean): Folders {
  let root: string | undefined
  /** What was found to lie below `root` the last time: mostly the same is asked for again. */
  let last: { path: string; real: string } | undefined
  const searches = new Map<string, Promise<string | undefined>>()
  const underWay = new Map<string, Promise<string>>()

  async function find(path: string): Promise<string | undefined> {
    let real: string
    try {
      real = await resolveLinks(path)
    } catch (error) {
      return ignoreCodes(ABSENT)(error)
    }
    if (isOurs(path, real)) return real
    root = await resolveLinks(directory) // not yet known, or the directory is a link that leads elsewhere now
    last = undefined
    if (isOurs(path, real)) return real
    throw new UploadError(
      'delivery_failed',
      `"${relative(directory, path)}" is not in the folder of the destination: a link leads out of it. Remove the link.`,
    )
  }

  function isOurs(path: string, real: string): boolean {
    if (path === last?.path && real === last.real) return true
    if (root === undefined || !isInside(root, path, real)) return false
    last = { path, real }
    return true
  }

  function isInside(root: string, path: string, real: string): boolean {
    if (real === join(root, relative(directory, path))) return true
    const inner = relative(root, real)
    return !isAbsolute(inner) && inner.split(sep).every(name => !name.startsWith('.'))
  }

  async function make(path: string, mode = folderMode): Promise<string> {
    const found = underWay.get(path) ?? (await search(path))
    if (found !== undefined) return found
    const making = underWay.get(path) ?? add(path, mode).finally(() => underWay.delete(path))
    underWay.set(path, making)
    return making
  }

  /** As `find`; who asks for the same folder at the same time shares the answer. */
  async function search(path: string): Promise<string | undefined> {
    const found = searches.get(path) ?? find(path)
    searches.set(path, found)
    try {
      return await found
    } finally {
      searches.delete(path)
    }
  }

  async function add(path: string, mode: number): Promise<string> {
    if (path === directory) await addRoot()
    else await addFolder(join(await make(dirname(path)), relative(dirname(path), path)), mode)
    const real = await find(path)
    if (real !== undefined) return real
    throw new UploadError(
      'delivery_failed',
      `"${relative(directory, path)}" is a link that leads nowhere. Remove the link.`,
    )
  }

  async function addRoot(): Promise<void> {
    const outermost = await makePath(directory, folderMode)
    if (outermost === undefined) return
    await setMode(directory, folderMode)
    if (!durable) return
    for (let path = directory; path.length >= outermost.length; path = dirname(path)) {
      await syncFolder(dirname(path))
    }
  }

  async function addFolder(path: string, mode: number): Promise<void> {
    const isNew = await mkdir(path, mode).then(() => true, ignoreCodes(new Set(['EEXIST'])))
    if (isNew) await setMode(path, mode)
    if (durable) await syncFolder(dirname(path))
  }

  return { find, make }
}

/**
 * Puts the entries of a folder on the disk. One sync is under way for a folder at a time; all who come meanwhile share
 * the next one, since the one under way may have begun before their entries were there.
 */
export function createFolderSync(sync: (path: string) => Promise<void> = syncFolder) {
  const underWay = new Map<string, Promise<void>>()
  const next = new Map<string, Promise<void>>()

  function begin(path: string): Promise<void> {
    next.delete(path)
    const running = sync(path).finally(() => underWay.delete(path))
    underWay.set(path, running)
    return running
  }

  return (path: string): Promise<void> => {
    const current = underWay.get(path)
    if (current === undefined) return begin(path)
    const shared = next.get(path) ?? current.catch(() => {}).then(() => begin(path))
    next.set(path, shared)
    return shared
  }
}

/** Puts the entries of a folder on the disk, which Windows does by itself. */
async function syncFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return
  const handle = await open(path, 'r')
  try {
    await handle.sync().catch(ignoreCodes(UNSUPPORTED))
  } finally {
    await handle.close()
  }
}

/** Gives a new folder its mode whatever the umask is, and leaves it the group it inherits. */
async function setMode(path: string, mode: number): Promise<void> {
  const inherited = (await stat(path)).mode & 0o2000
  await chmod(path, mode | inherited).catch(ignoreCodes(UNSUPPORTED))
}

function resolveLinks(path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    realpath.native(path, (error, real) => {
      if (error) reject(error)
      else resolve(real)
    })
  })
}

function ignoreCodes(codes: ReadonlySet<string>): (error: unknown) => undefined {
  return error => {
    if (!codes.has(systemCode(error) ?? '')) throw error
  }
}
