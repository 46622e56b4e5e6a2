import { randomUUID } from 'node:crypto'
import {
  chmod,
  constants,
  copyFile,
  type FileHandle,
  link,
  open,
  stat,
  unlink,
  writeFile,
} from 'node:fs/promises'
import { join, sep } from 'node:path'
import { systemCode } from '../../errors.ts'
import { closeFile, openFile, renameFile, syncFile, writeAll } from '../../files/file-calls.ts'
import { syncFolder } from '../../files/folder-sync.ts'
import type { Held } from '../../files/held.ts'
import type { Spool } from '../../payload/spool.ts'
import { Problem } from '../../problem.ts'
import type { UploadObject } from '../contract.ts'

/** Maximum size of a body that is written at once, in bytes. */
const MAX_BUFFERED_BYTES = 1024 * 1024
/** Error codes of `link` if hard links are impossible: another file system, one without hard links, or too many links. */
const NO_LINK = new Set(['EXDEV', 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'])
/** Error codes of file systems without permissions. */
const NO_MODES = new Set(['EPERM', 'ENOTSUP', 'ENOSYS'])

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
      if (needsChmod || !isSmall(body)) await copy(path, body, signal)
      else {
        const chunks: Buffer[] = []
        for await (const chunk of body.read(signal)) chunks.push(chunk)
        assertSize(bytesOf(chunks), body)
        await writeNew(path, chunks, fileMode, durable)
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

  async function copy(path: string, body: FileBody, signal: AbortSignal): Promise<void> {
    const isLinked = body.path !== undefined
    if (body.path !== undefined) {
      await linkOrCopy(body.path, path)
      if (!durable) {
        await chmod(path, fileMode).catch(ignoreMissingModes)
        return
      }
    }
    const handle = await open(path, isLinked ? 'r+' : 'wx', fileMode)
    try {
      if (!isLinked) await writeBody(handle, body, signal)
      if (isLinked || needsChmod) await handle.chmod(fileMode).catch(ignoreMissingModes)
      if (durable) await handle.sync()
    } finally {
      await handle.close()
    }
  }

  async function move(path: string, folder: string, file: string): Promise<void> {
    try {
      await renameFile(path, folder + sep + file)
    } catch (error) {
      if (systemCode(error) !== 'EXDEV') throw error
      await copyOver(path, folder, file)
    }
  }

  /** Copies the file to a temporary name in its folder and renames it there, if another file system is mounted on the folder. */
  async function copyOver(path: string, folder: string, file: string): Promise<void> {
    const temporary = join(folder, `.${randomUUID()}`)
    try {
      await copyFile(path, temporary, constants.COPYFILE_EXCL)
      if (durable) await syncPath(temporary)
      await renameFile(temporary, join(folder, file))
    } catch (error) {
      await discard(temporary)
      throw error
    }
    await discard(path)
  }

  return async (body, folder, file, signal) => {
    signal.throwIfAborted()
    const path = await spool.place(place => fill(place, body, signal))
    try {
      signal.throwIfAborted()
      await inFolder(folder, async held => {
        await admit(join(held.real, file))
        signal.throwIfAborted()
        await move(path, held.path, file)
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

async function writeNew(
  path: string,
  chunks: readonly Uint8Array[],
  mode: number,
  durable: boolean,
): Promise<void> {
  const file = await openFile(path, 'wx', mode)
  try {
    await writeAll(file, chunks)
    if (durable) await syncFile(file)
  } finally {
    await closeFile(file)
  }
}

/** Whether the bytes of a body are in memory and few. */
function isSmall({ path, size }: FileBody): boolean {
  return path === undefined && size <= MAX_BUFFERED_BYTES
}

function bytesOf(chunks: readonly Uint8Array[]): number {
  let bytes = 0
  for (const chunk of chunks) bytes += chunk.length
  return bytes
}

async function writeBody(handle: FileHandle, body: FileBody, signal: AbortSignal): Promise<void> {
  await writeFile(handle, body.read(signal), { signal })
  assertSize((await handle.stat()).size, body)
}

function assertSize(size: number, body: FileBody): void {
  if (size === body.size) return
  throw new Problem(`only ${size} of ${body.size} bytes of the file arrived`, { retryable: true })
}

async function syncPath(path: string): Promise<void> {
  const handle = await open(path, 'r+')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Removes a temporary file if it exists. If that fails, it is removed with its spool. */
async function discard(path: string): Promise<void> {
  await unlink(path).catch(() => {})
}

function ignoreMissingModes(error: unknown): void {
  if (!NO_MODES.has(systemCode(error) ?? '')) throw error
}
