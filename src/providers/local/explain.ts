import { isStorageFull, systemCode } from '../../errors.ts'
import { Problem } from '../../problem.ts'

const NOT_WRITABLE = 'Give the user of upload-server write access.'
const [TAKEN, OTHER_KEY] = [
  'a folder or a special file with this name already exists',
  'Use another object key, or remove it.',
]

/** Reasons and advice by error code. */
const REASONS: Readonly<Record<string, readonly [why: string, advice?: string]>> = {
  ENOSPC: ['its folder is full'],
  EDQUOT: ['its folder is full: the disk quota is exceeded'],
  EROFS: ['its folder is read-only', 'Mount it read-write and try again.'],
  EACCES: ['permission denied', NOT_WRITABLE],
  EPERM: ['permission denied', NOT_WRITABLE],
  ENOTDIR: [
    'a file exists where a folder is needed',
    'Remove the file, or use another object key or "directory".',
  ],
  EISDIR: [TAKEN, OTHER_KEY],
  EEXIST: [TAKEN, OTHER_KEY],
  ENOTEMPTY: [TAKEN, OTHER_KEY],
  ENOENT: ['a file or folder was removed during the upload', 'Try again.'],
  ENAMETOOLONG: ['the path is too long for the file system', 'Use a shorter object key.'],
}
const TRANSIENT_CODES = ['EMFILE', 'ENFILE', 'EBUSY', 'EAGAIN', 'ENOENT', 'ESTALE']

/** Runs `work`. Errors of the file system become problems, because clients must not see the path of the folder. */
export async function explained<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const code = systemCode(error)
    if (error instanceof Problem || code === undefined) throw error
    const [why, advice] = REASONS[code] ?? ['the file system rejects it', "Check the server's log."]
    throw new Problem(`${why} (${code})`, {
      advice,
      ...(isStorageFull(error) && { code: 'insufficient_storage' }),
      cause: error,
      retryable: TRANSIENT_CODES.includes(code),
    })
  }
}
