import type { Client } from 'basic-ftp'
import type { UploadObject } from '../contract.ts'
import { readObject } from '../shared/body.ts'
import { joinRemote, parentOf, temporaryPath } from '../shared/remote-path.ts'
import type { FtpConnection } from './connect.ts'
import { replyCode } from './explain.ts'
import { createFtpFolders, removeFile, replaceFile, writeFile } from './files.ts'

/** Stores objects with a temporary name in the same folder, and renames them when they are complete. */
export interface FtpUploads {
  /** @param path path of the object below the folder of the destination */
  put(connection: FtpConnection, object: UploadObject, path: string, signal: AbortSignal): Promise<void>
  /** Writes a file and removes it. */
  probe(connection: FtpConnection): Promise<void>
  /** Removes the temporary files of failed puts, whose connections were closed. */
  tidy(connection: FtpConnection): Promise<void>
  /** Returns whether such files exist. */
  isUntidy(): boolean
}

const PROBE = Buffer.from('probe')

export function createFtpUploads(): FtpUploads {
  const folders = createFtpFolders()
  const left = new Set<string>()

  async function withTemporary(
    client: Client,
    folder: string,
    send: (path: string) => Promise<void>,
    use: (path: string) => Promise<void>,
  ): Promise<void> {
    const path = temporaryPath(folder)
    const fail = (error: unknown): never => {
      left.add(path)
      throw error
    }
    await folders.inFolder(client, folder, isCached =>
      send(path).then(
        () => true,
        error => (isCached && replyCode(error) !== undefined ? undefined : fail(error)),
      ),
    )
    await use(path).catch(fail)
  }

  return {
    async put({ client, directory }, object, relative, signal) {
      const path = joinRemote(directory, relative)
      await withTemporary(
        client,
        parentOf(path),
        temporary => writeFile(client, temporary, readObject(object, signal), object.size),
        async temporary => {
          signal.throwIfAborted()
          await replaceFile(client, temporary, path)
        },
      )
    },

    async probe({ client, directory }) {
      const send = (path: string) => writeFile(client, path, [PROBE], PROBE.length)
      await withTemporary(client, directory, send, path => removeFile(client, path))
    },

    async tidy({ client }) {
      for (const path of [...left]) {
        left.delete(path)
        try {
          await removeFile(client, path)
        } catch (error) {
          if (replyCode(error) !== undefined) continue // the server rejects the removal, so a retry would not help
          left.add(path)
          throw error
        }
      }
    },

    isUntidy: () => left.size > 0,
  }
}
