import { systemCode } from '../../errors.ts'
import { Problem } from '../../problem.ts'
import { type Causes, causeOf, FULL } from '../shared/causes.ts'

const DENIED = { why: 'permission denied', advice: 'Give the user of upload-server write access.' }
const TAKEN = {
  why: 'a folder or a special file with this name already exists',
  advice: 'Use another object key, or remove it.',
}
const OTHER = { why: 'the file system rejects it', advice: "Check the server's log." }
const BUSY = { ...OTHER, retryable: true }

/** Causes by error code of the system. */
const CAUSES: Causes = {
  ENOSPC: { why: 'its folder is full', ...FULL },
  EDQUOT: { why: 'its folder is full: the disk quota is exceeded', ...FULL },
  EROFS: { why: 'its folder is read-only', advice: 'Mount it read-write and try again.', ...FULL },
  EACCES: DENIED,
  EPERM: DENIED,
  ENOTDIR: {
    why: 'a file exists where a folder is needed',
    advice: 'Remove the file, or use another object key or "directory".',
  },
  EISDIR: TAKEN,
  EEXIST: TAKEN,
  ENOTEMPTY: TAKEN,
  ENOENT: { why: 'a file or folder was removed during the upload', advice: 'Try again.', retryable: true },
  ENAMETOOLONG: { why: 'the path is too long for the file system', advice: 'Use a shorter object key.' },
  EMFILE: BUSY,
  ENFILE: BUSY,
  EBUSY: BUSY,
  EAGAIN: BUSY,
  ESTALE: BUSY,
}

/** Runs `work`. Errors of the file system become problems, because clients must not see the path of the folder. */
export async function explained<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const code = systemCode(error)
    if (error instanceof Problem || code === undefined) throw error
    const { why, ...cause } = causeOf(CAUSES, code, OTHER)
    throw new Problem(`${why} (${code})`, { ...cause, cause: error })
  }
}
