import { chmod, lstat, mkdir, realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path'
import { systemCode } from '../../errors.ts'
import { ignoreCodes, syncFolder, UNSUPPORTED } from '../../files/folder-sync.ts'
import { type Held, type HeldFile, hold, holdFolder } from '../../files/held.ts'
import { makePath } from '../../files/make-path.ts'
import { Problem } from '../../problem.ts'

/** Error codes of a path at which nothing is. */
export const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG'])

/** Number of attempts to create a folder that other programs remove at the same time. */
const MAX_ATTEMPTS = 100

/**
 * Folders below one directory. No symbolic link may lead out of it. Paths are absolute and begin with the directory. `work`
 * uses the `path` of the open folder, which prevents symlink races: it stays the same folder even if it is replaced.
 *
 * @param durable if true, new folders are written durably (fsync) before `make` resolves
 */
export function createFolders(directory: string, folderMode: number, durable: boolean) {
  /** @throws Problem if a link leads out of the directory, or to a hidden path in it */
  async function admit(path: string, real: string): Promise<void> {
    if (real === path) return // there is no link in it
    const root = await realpath(directory)
    const inner = relative(root, real)
    const isInside = !isAbsolute(inner) && !inner.split(sep).some(name => name.startsWith('.'))
    if (isInside || real === join(root, relative(directory, path))) return
    const why = `"${relative(directory, path)}" is outside the folder of the destination: a symbolic link points out of it`
    throw new Problem(why, { advice: 'Remove the link.' })
  }

  async function openAdmitted<T extends Held>(path: string, opening: Promise<T>): Promise<T> {
    const held = await opening
    try {
      await admit(path, held.real)
      return held
    } catch (error) {
      await held.close()
      throw error
    }
  }
  const openFolder = (path: string) => openAdmitted(path, holdFolder(path, 'follow'))

  /** Opens a folder, which is created if it does not exist. */
  async function obtain(path: string, mode: number): Promise<Held> {
    for (let attempt = 0; ; attempt++) {
      try {
        if (attempt > 0) await add(path, mode)
        return await openFolder(path)
      } catch (error) {
        const code = systemCode(error) ?? ''
        if (attempt === 0 && ABSENT.has(code)) continue
        if (ABSENT.has(code) && (await isLink(path)))
          throw new Problem(`"${relative(directory, path)}" is a broken symbolic link`, {
            advice: 'Remove the link.',
          })
        if (code !== 'ENOENT' || attempt === MAX_ATTEMPTS) throw error
      }
    }
  }

  async function add(path: string, mode: number): Promise<void> {
    if (path === directory) return addRoot(directory, folderMode, durable)
    const around = await obtain(dirname(path), folderMode)
    try {
      const folder = join(around.path, basename(path))
      const isNew = await mkdir(folder, mode).then(() => true, ignoreCodes(new Set(['EEXIST'])))
      if (isNew) await setMode(folder, mode)
      if (durable) await syncFolder(around)
    } finally {
      await around.close()
    }
  }

  return {
    /** Runs `work` in an existing folder. Returns undefined if it does not exist. @throws Problem as `admit` */
    async find<T>(path: string, work: (folder: Held) => Promise<T>): Promise<T | undefined> {
      const found = await openFolder(path).catch(ignoreCodes(ABSENT))
      return found && work(found).finally(() => found.close())
    },
    /** Runs `work` in a folder, which is created with its parents if it does not exist. `mode` applies to the folder itself. */
    async make<T>(path: string, work: (folder: Held) => Promise<T>, mode = folderMode): Promise<T> {
      const folder = await obtain(path, mode)
      return work(folder).finally(() => folder.close())
    },
    /** Opens an existing file and follows links. Returns undefined if it does not exist. @throws Problem as `admit` */
    async open(path: string): Promise<HeldFile | undefined> {
      const real = await realpath(path).catch(ignoreCodes(ABSENT))
      if (real === undefined) return undefined
      await admit(path, real)
      return openAdmitted(path, hold(real)).catch(ignoreCodes(ABSENT))
    },
  }
}

/** Creates the directory itself, with its parents. */
async function addRoot(directory: string, folderMode: number, durable: boolean): Promise<void> {
  const outermost = await makePath(directory, folderMode).catch(error => {
    if (systemCode(error) !== 'EEXIST') throw error
    throw Object.assign(new Error(`ENOTDIR: "${directory}" is a file`), { code: 'ENOTDIR' })
  })
  if (outermost === undefined) return
  await setMode(directory, folderMode)
  for (let path = directory; durable && path.length >= outermost.length; path = dirname(path)) {
    const around = await holdFolder(dirname(path), 'follow')
    await syncFolder(around).finally(() => around.close())
  }
}

/** Sets the mode of a new folder regardless of the umask, and keeps the setgid bit that it inherited. */
async function setMode(path: string, mode: number): Promise<void> {
  const folder = await holdFolder(path, 'refuse')
  await chmod(folder.path, mode | (folder.status.mode & 0o2000))
    .catch(ignoreCodes(UNSUPPORTED))
    .finally(() => folder.close())
}

async function isLink(path: string): Promise<boolean> {
  return (await lstat(path).catch(ignoreCodes(ABSENT)))?.isSymbolicLink() ?? false
}
