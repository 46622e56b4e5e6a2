import { realpath } from 'node:fs'
import { chmod, lstat, mkdir } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path'
import { systemCode, UploadError } from '../../errors.ts'
import { ignoreCodes, syncFolder, UNSUPPORTED } from '../../files/folder-sync.ts'
import { type Held, type HeldFile, hold, holdFolder } from '../../files/held.ts'
import { createKeptFolders, type Kept } from '../../files/kept-folders.ts'
import { makePath } from '../../files/make-path.ts'

const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG'])

/** Number of attempts to create a folder that other programs remove at the same time. */
const MAX_ATTEMPTS = 100
/**
 * Folders below one directory. No symbolic link may lead out of it. Paths are absolute and begin with the directory. `work`
 * uses the `path` of the open folder, which prevents symlink races: it stays the same folder even if it is replaced.
 */
export interface Folders {
  /**
   * Runs `work` in an existing folder. Returns undefined if it does not exist.
   * @throws UploadError `delivery_failed` if a link leads out of the directory, or to a hidden path in it
   */
  find<T>(path: string, work: (folder: Held) => Promise<T>): Promise<T | undefined>
  /** Runs `work` in a folder, which is created with its parents if it does not exist. `mode` applies to the folder itself. */
  make<T>(path: string, work: (folder: Held) => Promise<T>, mode?: number): Promise<T>
  /** Opens an existing file and follows links. Returns undefined if it does not exist. @throws as `find` */
  open(path: string): Promise<HeldFile | undefined>
  close(): Promise<void>
}

/**
 * At each call, the path must lead to the open folder, so that a link that is created later can't lead out of the directory
 * either.
 *
 * @param durable if true, new folders are written durably (fsync) before `make` resolves
 */
export function createFolders(directory: string, folderMode: number, durable: boolean): Folders {
  const admit = createAdmission(directory)
  const kept = createKeptFolders()
  const searches = new Map<string, Promise<Kept | undefined>>()
  const inProgress = new Map<string, Promise<Kept>>()

  async function open(path: string): Promise<Kept> {
    const folder = await holdFolder(path, 'follow')
    try {
      await admit(path, folder.real)
    } catch (error) {
      await folder.close()
      throw error
    }
    return kept.keep(path, folder)
  }

  /** Looks up a folder. Concurrent calls for the same folder share one lookup. */
  async function search(path: string): Promise<Kept | undefined> {
    const found = searches.get(path) ?? lookUp(path).catch(ignoreCodes(ABSENT))
    searches.set(path, found)
    try {
      return await found
    } finally {
      searches.delete(path)
    }
  }

  async function lookUp(path: string): Promise<Kept> {
    return (await kept.find(path)) ?? open(path)
  }

  async function obtain(path: string, mode: number): Promise<Kept> {
    for (let attempt = 1; ; attempt++) {
      const found = inProgress.get(path) ?? (await search(path))
      if (found !== undefined) return found
      const adding = inProgress.get(path) ?? add(path, mode).finally(() => inProgress.delete(path))
      inProgress.set(path, adding)
      try {
        return await adding
      } catch (error) {
        if (systemCode(error) !== 'ENOENT' || attempt === MAX_ATTEMPTS) throw error
      }
    }
  }

  async function add(path: string, mode: number): Promise<Kept> {
    if (path === directory) await addRoot(directory, folderMode, durable)
    else
      await obtain(dirname(path), folderMode).then(one =>
        kept.use(one, around => addFolder(around, path, mode, durable)),
      )
    try {
      return await open(path)
    } catch (error) {
      if (!ABSENT.has(systemCode(error) ?? '') || !(await isLink(path))) throw error
      throw new UploadError(
        'delivery_failed',
        `"${relative(directory, path)}" is a broken symbolic link. Remove the link.`,
      )
    }
  }

  return {
    async find(path, work) {
      const found = await search(path)
      return found && kept.use(found, work)
    },
    make: async (path, work, mode = folderMode) => kept.use(await obtain(path, mode), work),
    async open(path) {
      const real = await resolveLinks(path).catch(ignoreCodes(ABSENT))
      if (real === undefined) return undefined
      await admit(path, real)
      const file = await hold(real).catch(ignoreCodes(ABSENT))
      if (file === undefined) return undefined
      try {
        await admit(path, file.real)
        return file
      } catch (error) {
        await file.close()
        throw error
      }
    },
    close: kept.close,
  }
}

/**
 * Returns a function that rejects a path whose real path is outside the directory.
 * @throws UploadError `delivery_failed` if a link leads out of the directory, or to a hidden path in it
 */
function createAdmission(directory: string): (path: string, real: string) => Promise<void> {
  let root: string | undefined
  const isInside = (path: string, real: string): boolean => {
    if (root === undefined) return false
    if (real === join(root, relative(directory, path))) return true
    const inner = relative(root, real)
    return !isAbsolute(inner) && inner.split(sep).every(name => !name.startsWith('.'))
  }
  return async (path, real) => {
    if (isInside(path, real)) return
    root = await resolveLinks(directory) // it is unknown so far, or the directory is a link whose target has changed
    if (isInside(path, real)) return
    throw new UploadError(
      'delivery_failed',
      `"${relative(directory, path)}" is outside the folder of the destination: a symbolic link points out of it. Remove the link.`,
    )
  }
}

/** Creates the directory itself, with its parents. */
async function addRoot(directory: string, folderMode: number, durable: boolean): Promise<void> {
  const outermost = await makePath(directory, folderMode).catch(error => {
    if (systemCode(error) !== 'EEXIST') throw error
    throw Object.assign(new Error(`ENOTDIR: "${directory}" is a file`), { code: 'ENOTDIR' })
  })
  if (outermost === undefined) return
  const folder = await holdFolder(directory, 'refuse')
  await setMode(folder, folderMode).finally(() => folder.close())
  if (!durable) return
  for (let path = directory; path.length >= outermost.length; path = dirname(path)) {
    const around = await holdFolder(dirname(path), 'follow')
    await syncFolder(around).finally(() => around.close())
  }
}

async function addFolder(around: Held, path: string, mode: number, durable: boolean): Promise<void> {
  const folderPath = join(around.path, basename(path))
  const isNew = await mkdir(folderPath, mode).then(() => true, ignoreCodes(new Set(['EEXIST'])))
  if (isNew) {
    const folder = await holdFolder(folderPath, 'refuse')
    await setMode(folder, mode).finally(() => folder.close())
  }
  if (durable) await syncFolder(around)
}

/** Sets the mode of a new folder regardless of the umask, and keeps the setgid bit that it inherited. */
async function setMode({ path, status }: Held, mode: number): Promise<void> {
  await chmod(path, mode | (status.mode & 0o2000)).catch(ignoreCodes(UNSUPPORTED))
}

async function isLink(path: string): Promise<boolean> {
  return (await lstat(path).catch(ignoreCodes(ABSENT)))?.isSymbolicLink() ?? false
}

function resolveLinks(path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    realpath.native(path, (error, real) => {
      if (error) reject(error)
      else resolve(real)
    })
  })
}
