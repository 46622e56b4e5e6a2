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

export type FileBody = Pick<UploadObject, 'size' | 'path' | 'read'>

export interface WriterOptions {
  /** Spool on the same file system as the files. */
  spool: Spool
  /** Runs work in a folder, which is created if it does not exist. */
  inFolder<T>(path: string, work: (folder: Held) => Promise<T>): Promise<T>
  /** Rejects files that must not be replaced, by their real path. */
  admit(path: string): Promise<void>
  fileMode: number
  /** If true, a file and its name are written durably (fsync) before `write` resolves. */
  durable: boolean
}

/** Writes a file atomically: into a temporary file, which is then renamed. */
export type WriteFile = (body: FileBody, folder: string, file: string, signal: AbortSignal) => Promise<void>

export function createWriter(options: WriterOptions): WriteFile {
  const { spool, inFolder, admit, fileMode, durable } = options
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

  async function move(
    path: string,
    folder: string,
    file: string,
    body: FileBody,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      await rename(path, join(folder, file))
    } catch (error) {
      if (systemCode(error) !== 'EXDEV') throw error
      // Another file system is mounted on the folder, so the file is copied to a temporary name there.
      const copy = await fill(join(folder, `.${randomUUID()}`), { ...body, path }, signal)
      await rename(copy, join(folder, file)).finally(() => discard(copy))
      await discard(path)
    }
  }

  return async (body, folder, file, signal) => {
    signal.throwIfAborted()
    const path = await spool.place(place => fill(place, body, signal))
    try {
      signal.throwIfAborted()
      await inFolder(folder, async held => {
        await admit(join(held.real, file))
        signal.throwIfAborted()
        await move(path, held.path, file, body, signal)
        if (durable) await syncFolder(held)
      })
    } catch (error) {
      await discard(path)
      throw error
    }
    // A repeated put may rename a file to another name of the same file, which does nothing and keeps both names (POSIX).
    if (body.path !== undefined) await discard(path)
  }
}

/** Removes a temporary file if it exists. If that fails, it is removed with its spool. */
async function discard(path: string): Promise<void> {
  await unlink(path).catch(() => {})
}
