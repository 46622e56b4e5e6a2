import { systemCode } from '../../errors.ts'
import { Problem } from '../../problem.ts'

type Explained = readonly [why: string, advice?: string]

const NO_ROOM: Record<string, Explained> = {
  ENOSPC: ['its folder is full'],
  EDQUOT: ['its folder is full: the disk quota is exceeded'],
  EROFS: ['its folder is read-only', 'Mount it read-write and try again.'],
}

const IN_THE_WAY: Explained = [
  'a folder or a special file with this name already exists',
  'Use another object key, or remove it.',
]
const NOT_ALLOWED: Explained = ['permission denied', 'Give the user of upload-server write access.']

const REASONS: Record<string, Explained> = {
  EACCES: NOT_ALLOWED,
  EPERM: NOT_ALLOWED,
  ENOTDIR: [
    'a file exists where a folder is needed',
    'Remove the file, or use another object key or "directory".',
  ],
  EISDIR: IN_THE_WAY,
  EEXIST: IN_THE_WAY,
  ENOTEMPTY: IN_THE_WAY,
  ENOENT: ['a file or folder was removed during the upload', 'Try again.'],
  ENAMETOOLONG: ['the path is too long for the file system', 'Use a shorter object key.'],
}

const TRANSIENT_CODES = new Set(['EMFILE', 'ENFILE', 'EBUSY', 'EAGAIN', 'ENOENT', 'ESTALE'])

/** Runs `work`. Errors of the file system become problems. After an abort, the reason of the signal is thrown. */
export async function explained<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    signal?.throwIfAborted()
    throw toProblem(error)
  }
}

/** Clients must not see the path of the folder. */
function toProblem(error: unknown): unknown {
  const code = systemCode(error)
  if (error instanceof Problem || code === undefined) return error
  const noRoom = NO_ROOM[code]
  const [why, advice] = noRoom ?? REASONS[code] ?? ['the file system rejects it', "Check the server's log."]
  return new Problem(`${why} (${code})`, {
    advice,
    ...(noRoom && { code: 'insufficient_storage' }),
    cause: error,
    retryable: TRANSIENT_CODES.has(code),
  })
}
