import { systemCode, UploadError } from '../../errors.ts'

const NO_ROOM: Record<string, string> = {
  ENOSPC: 'is full. Free some space there and try again',
  EDQUOT: 'is full: the disk quota is exceeded. Free some space there and try again',
  EROFS: 'is read-only. Mount it read-write and try again',
}

const IN_THE_WAY =
  'a folder or a special file with this name already exists. Use another object key, or remove it'
const NOT_ALLOWED = 'permission denied. Give the user of upload-server write access'

const REASONS: Record<string, string> = {
  EACCES: NOT_ALLOWED,
  EPERM: NOT_ALLOWED,
  ENOTDIR:
    'a file exists where a folder is needed. Remove the file, or use another object key or "directory"',
  EISDIR: IN_THE_WAY,
  EEXIST: IN_THE_WAY,
  ENOTEMPTY: IN_THE_WAY,
  ENOENT: 'a file or folder was removed during the upload. Try again',
  ENAMETOOLONG: 'the path is too long for the file system. Use a shorter object key',
}

const TRANSIENT_CODES = new Set(['EMFILE', 'ENFILE', 'EBUSY', 'EAGAIN', 'ENOENT', 'ESTALE'])

/**
 * Runs `work`. Errors of the file system become an UploadError. After an abort, the reason of the signal is thrown.
 * `what` is a phrase such as `Storing "a.png"`.
 */
export type Explained = <T>(
  what: string,
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
) => Promise<T>

/** @param folder name of the folder by its destination, because clients must not see the path */
export function createExplained(folder: string): Explained {
  return async (what, signal, work) => {
    try {
      return await work()
    } catch (error) {
      signal?.throwIfAborted()
      throw explain(error, folder, what)
    }
  }
}

function explain(error: unknown, folder: string, what: string): unknown {
  const code = systemCode(error)
  if (error instanceof UploadError || code === undefined) return error
  const noRoom = NO_ROOM[code]
  if (noRoom !== undefined) {
    return new UploadError('insufficient_storage', `${what} failed: ${folder} ${noRoom}.`, { cause: error })
  }
  const reason = REASONS[code] ?? 'check the log of the server'
  return new UploadError('destination_failed', `${what} failed in ${folder} (${code}): ${reason}.`, {
    cause: error,
    retryable: TRANSIENT_CODES.has(code),
  })
}
