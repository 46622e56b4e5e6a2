import type { UploadObject } from '../contract.ts'
import type { KnownFolders } from '../shared/known-folders.ts'
import { type RemotePath, temporaryPath } from '../shared/remote-path.ts'
import { noSpace, sftpStatusOf } from './explain.ts'
import { isMissing, isSftpFailure, lacksRoom, removeFile, replaceFile, syncFile, writeBody } from './files.ts'
import type { SftpSession } from './session.ts'

export interface SftpUploadsOptions {
  /** Name of the server in messages. */
  readonly server: string
  readonly directory: string
  /** Mode of new files. Undefined: the default of the server. */
  readonly fileMode: number | undefined
  readonly folders: KnownFolders<SftpSession>
}

/** Stores objects with a temporary name in the same folder, and renames them when they are complete. */
export interface SftpUploads {
  put(session: SftpSession, object: UploadObject, place: RemotePath, signal: AbortSignal): Promise<void>
  /** Writes a file and removes it. */
  probe(session: SftpSession): Promise<void>
}

export function createSftpUploads({ server, directory, fileMode, folders }: SftpUploadsOptions): SftpUploads {
  /** Temporary files of broken connections, which the next connection removes. */
  const left = new Set<string>()

  async function put(
    session: SftpSession,
    object: UploadObject,
    { folder, path }: RemotePath,
    signal: AbortSignal,
  ): Promise<void> {
    void removeLeft(session)
    const file = await createFile(session, folder)
    try {
      await writeBody(session, file.handle, object, signal)
      await finish(session, file)
      signal.throwIfAborted()
      await replaceFile(session, file.path, path)
    } catch (error) {
      const isFull = isSftpFailure(error) && (await lacksRoom(session, folder, object.size))
      await discard(session, file)
      throw isFull ? noSpace(server, error) : error
    }
  }

  async function createFile(session: SftpSession, folder: string): Promise<TemporaryFile> {
    const path = temporaryPath(folder)
    const create = () => session.call<Buffer>((sftp, done) => sftp.open(path, 'wx', done))
    const handle = await folders.inFolder(session, folder, isCached =>
      create().catch(error => {
        // If the response was lost, the file may exist.
        if (sftpStatusOf(error) === undefined) left.add(path)
        if (!isCached || !isMissing(error)) throw error
        return undefined
      }),
    )
    return { path, handle, isOpen: true }
  }

  /** Sends all requests without waiting, because a server handles the requests for one file in order. */
  async function finish(session: SftpSession, file: TemporaryFile): Promise<void> {
    const { handle } = file
    const setMode = session.call((sftp, done) =>
      fileMode === undefined ? done() : sftp.fchmod(handle, fileMode, done),
    )
    await Promise.all([setMode, syncFile(session, handle), closeFile(session, file)])
  }

  async function discard(session: SftpSession, file: TemporaryFile): Promise<void> {
    await closeFile(session, file).catch(() => {})
    await removeFile(session, file.path).catch(() => left.add(file.path))
  }

  async function removeLeft(session: SftpSession): Promise<void> {
    const paths = [...left]
    left.clear()
    for (const path of paths) await removeFile(session, path).catch(() => left.add(path))
  }

  async function probe(session: SftpSession): Promise<void> {
    const file = await createFile(session, directory)
    try {
      await session.call((sftp, done) => sftp.write(file.handle, Buffer.from('probe'), 0, 5, 0, done))
      await finish(session, file)
    } finally {
      await discard(session, file)
    }
  }

  return { put, probe }
}

interface TemporaryFile {
  readonly path: string
  readonly handle: Buffer
  isOpen: boolean
}

/** Closes a file only once, because the server may have reused its handle for another file. */
async function closeFile(session: SftpSession, file: TemporaryFile): Promise<void> {
  if (!file.isOpen) return
  file.isOpen = false
  await session.call((sftp, done) => sftp.close(file.handle, done))
}
