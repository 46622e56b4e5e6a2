import { randomUUID } from 'node:crypto'
import { constants, copyFile, link, open, rename, stat, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readExactly } from '../../body.ts'
import { systemCode } from '../../errors.ts'
import { ignoreCodes, syncFolder, UNSUPPORTED } from '../../files/folder-sync.ts'
import type { Held } from '../../files/held.ts'
import type { Spool } from '../../payload/spool.ts'
import type { UploadObject } from '../contract.ts'

/** Error codes of `link` if hard links are impossible: another file system, one without hard links, or too many links. */
const NO_LINK = new Set(['EXDEV', 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'])

type FileBody = Pick<UploadObject, 'size' | 'path' | 'read'>

interface WriterOptions {
  /** Spool on the same file system as the files. */
  spool: Spool
  /** Rejects files that must not be replaced, by their real path. */
  admit(path: string): Promise<void>
  fileMode: number
  /** If true, a file and its name are written durably (fsync) before `write` resolves. */
  durable: boolean
}

/** Writes a file atomically into an open folder: into a temporary file, which is then renamed. */
export function createWriter({ spool, admit, fileMode, durable }: WriterOptions) {
  // New files don't get this mode, because of the umask.
  const needsChmod = (fileMode & process.umask()) !== 0

  /** Writes the temporary file, and removes it if that fails. */
  async function fill(path: string, body: FileBody, signal: AbortSignal): Promise<string> {
    try {
      if (body.path !== undefined) await linkOrCopy(body.path, path)
      const file = await open(path, body.path === undefined ? 'wx' : 'r+', fileMode)
      try {
        if (body.path === undefined) await writeFile(file, readExactly(body, signal))
        if (needsChmod || body.path !== undefined) await file.chmod(fileMode).catch(ignoreCodes(UNSUPPORTED))
        if (durable) await file.sync()
      } finally {
        await file.close()
      }
      return path
    } catch (error) {
      await discard(path)
      throw error
    }
  }

  /**
   * Links or copies a payload. A hard link shares bytes and mode with all its names, so only a payload that was spooled for
   * this folder and has no other name is linked.
   */
  async function linkOrCopy(source: string, path: string): Promise<void> {
    try {
      if (spool.holds(source) && (await stat(source)).nlink === 1) return await link(source, path)
    } catch (error) {
      if (!NO_LINK.has(systemCode(error) ?? '')) throw error
    }
    await copyFile(source, path, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE)
  }

  return async (
    body: FileBody,
    inFolder: (work: (folder: Held) => Promise<void>) => Promise<void>,
    name: string,
    signal: AbortSignal,
  ): Promise<void> => {
    signal.throwIfAborted()
    const path = await spool.place(place => fill(place, body, signal))
    let isMoved = false
    try {
      signal.throwIfAborted()
      await inFolder(async folder => {
        await admit(join(folder.real, name))
        signal.throwIfAborted()
        const end = join(folder.path, name)
        isMoved = (await rename(path, end).then(() => true, ignoreCodes(new Set(['EXDEV'])))) ?? false
        if (!isMoved) {
          // Another file system is mounted on the folder, so the file is copied to a temporary name there.
          const copy = await fill(join(folder.path, `.${randomUUID()}`), { ...body, path }, signal)
          await rename(copy, end).finally(() => discard(copy))
        }
        if (durable) await syncFolder(folder)
      })
    } finally {
      // A repeated put may rename a file to another name of the same file, which does nothing and keeps both names (POSIX).
      if (!isMoved || body.path !== undefined) await discard(path)
    }
  }
}

/** Removes a temporary file if it exists. If that fails, it is removed with its spool. */
async function discard(path: string): Promise<void> {
  await unlink(path).catch(() => {})
}
