import { type FileHandle, lstat, realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, normalize } from 'node:path'
import { systemCode, UploadError } from '../../errors.ts'
import { type HeldFile, hold } from '../../files/held.ts'
import { isBelowAny, type OwnCheck } from '../../files/own-paths.ts'
import { realAncestor } from '../../files/way-out.ts'
import { findWindowsFault } from '../../files/windows-path.ts'
import type { Source } from './source.ts'

const READ_BYTES = 256 * 1024

/** File systems of the kernel. They contain no regular files, and some of their contents are secret. */
const KERNEL_TREES = ['/proc', '/sys', '/dev']

/** Maximum length of a path on any system, in bytes: 32,767 characters on Windows. */
const LONGEST_PATH = 3 * 32_767

export interface PathOptions {
  /** Allowed directories. Undefined: all. */
  roots: readonly string[] | undefined
  /** Rejects files and directories of the server itself. */
  isOwn: OwnCheck
  /** Opens the file instead, and has its own rules. @throws UploadError */
  open?: (() => Promise<HeldFile>) | undefined
}

/**
 * Opens a file named by its path. The path is used literally. Symlinks are followed, and the real path is checked.
 *
 * @throws UploadError `source_forbidden` outside the allowed directories (whether it exists or not) and for files of
 *   the server or the kernel; `source_failed` if it does not exist, is not a regular file, or is not readable
 */
export async function openPath(path: string, options: PathOptions): Promise<Source> {
  if (!isAbsolute(path)) {
    if (options.roots) throw outside(path)
    throw new UploadError(
      'source_failed',
      `"${path}" is not a path on the server's machine (${process.platform}). Send the file itself in a form.`,
    )
  }
  if (Buffer.byteLength(path) > LONGEST_PATH)
    throw new UploadError('source_failed', `"${path}" is too long for a path.`)
  if (findWindowsFault(path, options.roots)) throw options.roots ? outside(path) : forbidden(path)
  if (path.includes('\0')) throw new UploadError('source_failed', `"${path}" contains a NUL character.`)
  if (isBelowAny(normalize(path), KERNEL_TREES)) throw options.roots ? outside(path) : forbidden(path)

  const file = await (options.open ?? (() => openReal(path, options.roots)))()
  try {
    // A folder of the path may change between realpath and open (symlink race), so the opened file is checked.
    if (options.roots && !isBelowAny(file.real, await realRoots(options.roots))) throw outside(path)
    if (isBelowAny(file.real, KERNEL_TREES)) throw forbidden(path)
    if (!file.status.isFile()) {
      throw new UploadError(
        'source_failed',
        `"${path}" is ${file.status.isDirectory() ? 'a folder. Send the paths of its files' : 'not a regular file'}.`,
      )
    }
    if (await options.isOwn(file.real, file.status)) throw forbidden(path)
    return {
      name: basename(path),
      folders: dirname(path).split(/[\\/]/).filter(Boolean),
      body: read(file.handle, path, file.status.size),
    }
  } catch (error) {
    await file.close()
    throw error instanceof UploadError ? error : unreadable(path, error)
  }
}

async function openReal(path: string, roots: PathOptions['roots']): Promise<HeldFile> {
  const real = await realpath(path).catch((error: unknown) => missing(path, roots, error))
  if (roots && !isBelowAny(real, await realRoots(roots))) throw outside(path)
  if (isBelowAny(real, KERNEL_TREES)) throw forbidden(path)
  return hold(real).catch((error: unknown) => {
    throw unreadable(path, error)
  })
}

/** Reads as many bytes as the file had when it was opened, and closes it. */
async function* read(handle: FileHandle, path: string, size: number): AsyncGenerator<Uint8Array> {
  try {
    for (let position = 0; position < size; ) {
      const length = Math.min(READ_BYTES, size - position)
      const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(length), 0, length, position)
      if (bytesRead === 0) {
        throw new UploadError(
          'source_failed',
          `"${path}" became shorter while it was read. Send it again when it is complete.`,
        )
      }
      position += bytesRead
      yield buffer.subarray(0, bytesRead)
    }
  } catch (error) {
    throw error instanceof UploadError ? error : unreadable(path, error)
  } finally {
    await handle.close()
  }
}

function outside(path: string): UploadError {
  return new UploadError(
    'source_forbidden',
    `"${path}" is outside the folders that this client may upload from (sources.path.roots). Send the file itself in a form instead.`,
  )
}

function forbidden(path: string): UploadError {
  return new UploadError('source_forbidden', `"${path}" may not be uploaded.`)
}

function unreadable(path: string, error: unknown): UploadError {
  const code = systemCode(error)
  const reason =
    code === 'EACCES' || code === 'EPERM' ? 'the server has no permission to read it' : (code ?? 'it failed')
  return new UploadError('source_failed', `"${path}" can't be read: ${reason}.`, { cause: error })
}

/** The error for a path that does not exist. It does not reveal what exists outside the allowed directories. */
async function missing(path: string, roots: readonly string[] | undefined, error: unknown): Promise<never> {
  if (roots) {
    const isLink = await lstat(path).then(
      s => s.isSymbolicLink(),
      () => false,
    )
    if (isLink || !isBelowAny(await realAncestor(path), await realRoots(roots))) throw outside(path)
  }
  const code = systemCode(error)
  if (code !== 'ENOENT' && code !== 'ENOTDIR') throw unreadable(path, error)
  throw new UploadError(
    'source_failed',
    `"${path}" does not exist on the server's machine. If the file is on another machine, send it in a form.`,
  )
}

async function realRoots(roots: readonly string[]): Promise<string[]> {
  const real = await Promise.all(roots.map(root => realpath(root).catch(() => undefined)))
  return real.filter(root => root !== undefined)
}
