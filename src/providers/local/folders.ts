import { realpath } from 'node:fs'
import { chmod, lstat, mkdir } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path'
import { systemCode, UploadError } from '../../errors.ts'
import { ignoreCodes, syncFolder, UNSUPPORTED } from '../../files/folder-sync.ts'
import { type Held, type HeldFile, hold, holdFolder } from '../../files/held.ts'
import { createKeptFolders, type Kept } from '../../files/kept-folders.ts'
import { makePath } from '../../files/make-path.ts'

const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG'])

/** How often others may remove a folder while it is made. */
const MOST_TRIES = 100
/**
 * Folders below one directory, that no link leads out of. Paths given are absolute and lie below it by their names. What
 * is done in a folder goes by its `path`, so that it is done there whatever others put in its place.
 */
export interface Folders {
  /**
   * Does `work` in a folder that is there; undefined when none is.
   * @throws UploadError `delivery_failed` when a link leads out of the directory or to something hidden in it
   */
  find<T>(path: string, work: (folder: Held) => Promise<T>): Promise<T | undefined>
  /** Does `work` in a folder, which is made with all around it when it is missing. `mode` is for the innermost. */
  make<T>(path: string, work: (folder: Held) => Promise<T>, mode?: number): Promise<T>
  /** Opens a file that is there, links resolved; undefined when none is. @throws as `find` */
  open(path: string): Promise<HeldFile | undefined>
  close(): Promise<void>
}

/**
 * The links are resolved for each call, so that one put into the directory later leads nowhere, either. That costs 10 to
 * 20 microseconds, a tenth of a put of 100 KB at most.
 *
 * @param durable whether a new folder is on the disk before `make` is done
 */
export function createFolders(directory: string, folderMode: number, durable: boolean): Folders {
  const admit = createAdmission(directory)
  const kept = createKeptFolders()
  const searches = new Map<string, Promise<Kept | undefined>>()
  const underWay = new Map<string, Promise<Kept>>()

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

  /** Whoever asks for the same folder at the same time shares the answer. */
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
    const isFound = async (folder: Held) => (await resolveLinks(path)) === folder.real
    return (await kept.find(path, isFound)) ?? open(path)
  }

  async function obtain(path: string, mode: number): Promise<Kept> {
    for (let tries = 1; ; tries++) {
      const found = underWay.get(path) ?? (await search(path))
      if (found !== undefined) return found
      const adding = underWay.get(path) ?? add(path, mode).finally(() => underWay.delete(path))
      underWay.set(path, adding)
      try {
        return await adding
      } catch (error) {
        if (systemCode(error) !== 'ENOENT' || tries === MOST_TRIES) throw error
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
 * Whether a path leads to where its name says, given what it has led to.
 * @throws UploadError `delivery_failed` when a link leads out of the directory or to something hidden in it
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
    root = await resolveLinks(directory) // not yet known, or the directory is a link that leads elsewhere now
    if (isInside(path, real)) return
    throw new UploadError(
      'delivery_failed',
      `"${relative(directory, path)}" is outside the folder of the destination: a symbolic link points out of it. Remove the link.`,
    )
  }
}

/** Makes the directory itself, with all around it. */
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
  const place = join(around.path, basename(path))
  const isNew = await mkdir(place, mode).then(() => true, ignoreCodes(new Set(['EEXIST'])))
  if (isNew) {
    const folder = await holdFolder(place, 'refuse')
    await setMode(folder, mode).finally(() => folder.close())
  }
  if (durable) await syncFolder(around)
}

/** Gives a new folder its mode whatever the umask is, and leaves it the group it inherits. */
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
