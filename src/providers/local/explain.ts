import { systemCode, UploadError } from '../../errors.ts'

const NO_ROOM: Record<string, string> = {
  ENOSPC: 'is full. Free some space there and send it again',
  EDQUOT: 'is full: the quota of the server is used up. Free some space there and send it again',
  EROFS: 'is read-only. Mount it for writing and send it again',
}

const IN_THE_WAY =
  'something of that name that is no file is in its place. Use another key or remove what is there'
const NOT_ALLOWED = 'upload-server may not write there. Give its user the permission'

const REASONS: Record<string, string> = {
  EACCES: NOT_ALLOWED,
  EPERM: NOT_ALLOWED,
  ENOTDIR: 'a file is in the place of one of its folders. Use another key or remove that file',
  EISDIR: IN_THE_WAY,
  EEXIST: IN_THE_WAY,
  ENOTEMPTY: IN_THE_WAY,
  ENOENT: 'something was removed while it was needed. Send it again',
  ENAMETOOLONG: 'its path is longer than the disk takes. Use a shorter key',
}

const PASSING = new Set(['EMFILE', 'ENFILE', 'EBUSY', 'EAGAIN', 'ENOENT', 'ESTALE'])

/**
 * Runs `work`. What the file system refuses in it becomes an UploadError; after an abort its reason is thrown.
 * `what` is a phrase such as `Storing "a.png"`.
 */
export type Explained = <T>(
  what: string,
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
) => Promise<T>

/** @param folder words for the folder that name its configuration; its path is no business of clients */
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
  const reason = REASONS[code] ?? 'the log of the server says more'
  return new UploadError('delivery_failed', `${what} failed in ${folder} (${code}): ${reason}.`, {
    cause: error,
    retryable: PASSING.has(code),
  })
}
