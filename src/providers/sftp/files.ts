import type { Attributes } from 'ssh2'
import { readExactly, wrongSize } from '../../body.ts'
import type { UploadObject } from '../contract.ts'
import { inTheWay, type RemoteFiles, responseCode } from '../shared/file-tree.ts'
import { type SftpSession, UNSUPPORTED } from './session.ts'

/** Status code of SFTP (draft-ietf-secsh-filexfer-02, section 7). */
const NO_SUCH_FILE = 2

const S_IFMT = 0o170000
const S_IFDIR = 0o040000

/** Size of one write request, in bytes. Every server accepts it (34,000 with its header), and ssh2 sends it in one packet. */
const WRITE_BYTES = 30 * 1024
/** Number of write requests in flight for one file: enough for 150 Mbit/s with a round-trip time of 100 ms. */
const WRITES_AHEAD = 64

export interface SftpFilesOptions {
  /** Modes of new files and folders. Undefined: the defaults of the server. */
  readonly fileMode: number | undefined
  readonly directoryMode: number | undefined
}

/** The responses of an SFTP server prove what was stored. */
export function createSftpFiles(
  { call }: SftpSession,
  { fileMode, directoryMode }: SftpFilesOptions,
): RemoteFiles {
  /** Returns the attributes of a file or folder. Links are not followed. */
  const find = (path: string) =>
    unlessCode(
      NO_SUCH_FILE,
      call<Attributes>((sftp, done) => sftp.lstat(path, done)),
    )
  const rename = (from: string, to: string) => call((sftp, done) => sftp.rename(from, to, done))
  const remove = (path: string) =>
    unlessCode(
      NO_SUCH_FILE,
      call((sftp, done) => sftp.unlink(path, done)),
    )

  /** Returns the number of bytes that the server has acknowledged. No other number proves what was stored. */
  async function writeBody(handle: Buffer, object: UploadObject, signal: AbortSignal): Promise<number> {
    let [sent, acknowledged] = [0, 0]
    const inFlight: Promise<void>[] = []
    for await (const chunk of readExactly(object, signal)) {
      for (let start = 0; start < chunk.length; start += WRITE_BYTES) {
        if (inFlight.length >= WRITES_AHEAD) await inFlight.shift()
        const [length, position] = [Math.min(WRITE_BYTES, chunk.length - start), sent]
        const write = call((sftp, done) => sftp.write(handle, chunk, start, length, position, done))
        const response = write.then(() => {
          acknowledged += length
        })
        response.catch(() => {}) // its error is thrown when it is awaited, unless an earlier one has failed
        inFlight.push(response)
        sent += length
      }
    }
    await Promise.all(inFlight)
    return acknowledged
  }

  return {
    async write(path, object, signal) {
      const handle = await call<Buffer>((sftp, done) => sftp.open(path, 'w', done))
      let isOpen = true
      // Only once, because the server may have reused the handle for another file.
      const close = async () => {
        if (!isOpen) return
        isOpen = false
        await call((sftp, done) => sftp.close(handle, done))
      }
      try {
        if ((await writeBody(handle, object, signal)) !== object.size) throw wrongSize()
        // A server handles the requests for one file in order.
        await Promise.all([
          fileMode !== undefined && call((sftp, done) => sftp.fchmod(handle, fileMode, done)),
          // Flushes it to disk if the server supports it.
          unlessCode(
            UNSUPPORTED,
            call((sftp, done) => sftp.ext_openssh_fsync(handle, done)),
          ),
          close(),
        ])
      } catch (error) {
        await close().catch(() => {})
        throw error
      }
    },
    exists: async path => (await find(path)) !== undefined,
    async isFolder(path) {
      const found = await unlessCode(
        NO_SUCH_FILE,
        call<Attributes>((sftp, done) => sftp.stat(path, done)),
      )
      if (found && !isFolderMode(found)) throw inTheWay('file', path)
      return found !== undefined
    },
    async makeFolder(path) {
      await call((sftp, done) => sftp.mkdir(path, done))
      // The umask of the server changes the mode that mkdir sends.
      if (directoryMode !== undefined) await call((sftp, done) => sftp.chmod(path, directoryMode, done))
    },
    /** Replaces a file: atomically if the server supports it, otherwise in two steps. */
    async rename(from, to) {
      try {
        return await call((sftp, done) => sftp.ext_openssh_rename(from, to, done))
      } catch (error) {
        const found = await find(to).catch(() => undefined)
        if (found && isFolderMode(found)) throw inTheWay('folder', to)
        if (responseCode(error) !== UNSUPPORTED) throw error
        await rename(from, to).catch(async refusal => {
          if (!found) throw refusal
          await remove(to)
          await rename(from, to)
        })
      }
    },
    remove,
    isRefusal: error => responseCode(error) !== undefined,
  }
}

function isFolderMode({ mode }: Attributes): boolean {
  return (mode & S_IFMT) === S_IFDIR
}

/** Returns undefined if the server responds with that status code. */
async function unlessCode<T>(code: number, response: Promise<T>): Promise<T | undefined> {
  try {
    return await response
  } catch (error) {
    if (responseCode(error) === code) return undefined
    throw error
  }
}
