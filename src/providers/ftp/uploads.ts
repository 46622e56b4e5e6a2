import type { Client } from 'basic-ftp'
import { readCopies } from '../../body.ts'
import type { UploadObject } from '../contract.ts'
import { createPathQueue } from '../shared/path-queue.ts'
import { joinRemote, parentOf, probeName, temporaryPath } from '../shared/remote-path.ts'
import type { FtpConnection } from './connect.ts'
import { replyCode } from './explain.ts'
import { createFtpFolders, removeFile, replaceFile, writeFile } from './files.ts'

/** Stores objects, by default with a temporary name in the same folder, and renames them when they are complete. */
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

/** @param atomic whether objects are stored with a temporary name first */
export function createFtpUploads(atomic: boolean): FtpUploads {
  const folders = createFtpFolders()
  const left = new Set<string>()
  const runInOrder = createPathQueue()

  /** Sends a file to a path in a folder, which is created if it does not exist. */
  function sendTo(client: Client, folder: string, send: () => Promise<void>): Promise<true> {
    return folders.inFolder(client, folder, isCached =>
      send().then(
        () => true as const,
        error => {
          if (isCached && replyCode(error) !== undefined) return undefined
          throw error
        },
      ),
    )
  }

  /** Remembers a file that may be left. */
  async function orLeft<T>(path: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      left.add(path)
      throw error
    }
  }

  return {
    async put({ client, directory }, object, relative, signal) {
      const path = joinRemote(directory, relative)
      const folder = parentOf(path)
      const write = (to: string) =>
        sendTo(client, folder, () => writeFile(client, to, readCopies(object, signal), object.size))
      if (!atomic) return runInOrder(path, async () => void (await write(path)))
      const temporary = temporaryPath(folder)
      await orLeft(temporary, async () => {
        await write(temporary)
        signal.throwIfAborted()
        await replaceFile(client, temporary, path)
      })
    },

    async probe({ client, directory }) {
      const path = atomic ? temporaryPath(directory) : joinRemote(directory, probeName())
      await orLeft(path, async () => {
        await sendTo(client, directory, () => writeFile(client, path, [PROBE], PROBE.length))
        await removeFile(client, path)
      })
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
