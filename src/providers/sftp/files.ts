import type { Attributes } from 'ssh2'
import { type Body, wrongSize } from '../../body.ts'
import { inTheWay, type RemoteFiles, responseCode } from '../shared/file-tree.ts'
import { parentOf } from '../shared/remote-path.ts'
import { noSpace } from './explain.ts'
import { type SftpSession, UNSUPPORTED } from './session.ts'

/** Status codes of SFTP (draft-ietf-secsh-filexfer-02, section 7). */
const NO_SUCH_FILE = 2
const FAILURE = 4

const S_IFMT = 0o170000
const S_IFDIR = 0o040000

/** Size of one write request, in bytes. Every server accepts it (34,000 with its header), and ssh2 sends it in one packet. */
const WRITE_BYTES = 30 * 1024
/** Number of write requests in flight for one file: enough for 150 Mbit/s with a round-trip time of 100 ms. */
const WRITES_AHEAD = 64

export interface SftpFilesOptions {
  /** Name of the server in messages. */
  readonly server: string
  /** Modes of new files and folders. Undefined: the defaults of the server. */
  readonly fileMode: number | undefined
  readonly directoryMode: number | undefined
}

/** The responses of an SFTP server prove what was stored. */
export function createSftpFiles(
  session: SftpSession,
  { server, fileMode, directoryMode }: SftpFilesOptions,
): RemoteFiles {
  return {
    async write(path, object, signal) {
      const handle = await session.call<Buffer>((sftp, done) => sftp.open(path, 'w', done))
      let isOpen = true
      // Only once, because the server may have reused the handle for another file.
      const close = async () => {
        if (!isOpen) return
        isOpen = false
        await session.call((sftp, done) => sftp.close(handle, done))
      }
      try {
        await writeBody(session, handle, object, signal)
        const setMode = session.call((sftp, done) =>
          fileMode === undefined ? done() : sftp.fchmod(handle, fileMode, done),
        )
        // A server handles the requests for one file in order.
        await Promise.all([setMode, syncFile(session, handle), close()])
      } catch (error) {
        await close().catch(() => {})
        const isFull =
          responseCode(error) === FAILURE && (await lacksRoom(session, parentOf(path), object.size))
        throw isFull ? noSpace(server, error) : error
      }
    },
    exists: async path => (await findFile(session, path)) !== undefined,
    async isFolder(path) {
      const found = await unlessAbsent(session.call<Attributes>((sftp, done) => sftp.stat(path, done)))
      if (found && !isFolderMode(found)) throw inTheWay('file', path)
      return found !== undefined
    },
    async makeFolder(path) {
      await session.call((sftp, done) => sftp.mkdir(path, done))
      // The umask of the server changes the mode that mkdir sends.
      if (directoryMode !== undefined)
        await session.call((sftp, done) => sftp.chmod(path, directoryMode, done))
    },
    rename: (from, to) => replaceFile(session, from, to),
    remove: path => removeFile(session, path),
    isRefusal: error => responseCode(error) !== undefined,
  }
}

/** @throws an error with a status code, or Problem if the connection is lost */
async function writeBody(
  session: SftpSession,
  handle: Buffer,
  body: Body,
  signal: AbortSignal,
): Promise<void> {
  const answers: Promise<void>[] = []
  let position = 0
  for await (const chunk of body.read(signal)) {
    for (let start = 0; start < chunk.length; start += WRITE_BYTES) {
      if (answers.length >= WRITES_AHEAD) await answers.shift()
      const [length, at] = [Math.min(WRITE_BYTES, chunk.length - start), position]
      const answer = session.call((sftp, done) => sftp.write(handle, chunk, start, length, at, done))
      answer.catch(() => {}) // its error is thrown when it is awaited, unless an earlier one has failed
      answers.push(answer)
      position += length
    }
  }
  await Promise.all(answers)
  if (position !== body.size) throw wrongSize()
}

/** Writes a file durably (fsync) if the server supports it. */
async function syncFile(session: SftpSession, handle: Buffer): Promise<void> {
  try {
    await session.call((sftp, done) => sftp.ext_openssh_fsync(handle, done))
  } catch (error) {
    if (responseCode(error) !== UNSUPPORTED) throw error
  }
}

/** Renames a file and replaces an existing one: atomically if the server supports it, otherwise in two steps. */
async function replaceFile(session: SftpSession, from: string, to: string): Promise<void> {
  try {
    await session.call((sftp, done) => sftp.ext_openssh_rename(from, to, done))
    return
  } catch (error) {
    const found = await findFile(session, to).catch(() => undefined)
    if (found && isFolderMode(found)) throw inTheWay('folder', to)
    if (responseCode(error) !== UNSUPPORTED) throw error
  }
  const rename = () => session.call((sftp, done) => sftp.rename(from, to, done))
  try {
    await rename()
  } catch (error) {
    if ((await findFile(session, to)) === undefined) throw error
    await removeFile(session, to)
    await rename()
  }
}

/** Returns the attributes of a file or folder. Links are not followed. Undefined if it does not exist. */
async function findFile(session: SftpSession, path: string): Promise<Attributes | undefined> {
  return unlessAbsent(session.call<Attributes>((sftp, done) => sftp.lstat(path, done)))
}

async function removeFile(session: SftpSession, path: string): Promise<void> {
  await unlessAbsent(session.call((sftp, done) => sftp.unlink(path, done)))
}

/** Returns whether the file system of a path has less free space. False if the server does not report it. */
async function lacksRoom(session: SftpSession, path: string, bytes: number): Promise<boolean> {
  try {
    const info = await session.call<{ f_bavail: bigint | number; f_frsize: bigint | number }>((sftp, done) =>
      sftp.ext_openssh_statvfs(path || '.', done),
    )
    return Number(info.f_bavail) * Number(info.f_frsize) < bytes
  } catch {
    return false
  }
}

function isFolderMode({ mode }: Attributes): boolean {
  return (mode & S_IFMT) === S_IFDIR
}

async function unlessAbsent<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer
  } catch (error) {
    if (responseCode(error) === NO_SUCH_FILE) return undefined
    throw error
  }
}
