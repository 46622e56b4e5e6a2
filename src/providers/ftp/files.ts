import { once } from 'node:events'
import { posix } from 'node:path'
import { Readable } from 'node:stream'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { TLSSocket } from 'node:tls'
import type { Client } from 'basic-ftp'
import { readCopies } from '../../body.ts'
import type { UploadObject } from '../contract.ts'
import { type RemoteFiles, responseCode } from '../shared/file-tree.ts'
import type { FtpConnection } from './connect.ts'

/** Reply code for files that don't exist, are forbidden or can't be replaced (RFC 959, section 4.2). */
const UNAVAILABLE = 550

/** Reply codes for an unknown command. */
const UNKNOWN_COMMAND = new Set([500, 502, 504])

/** Time limit for the reason after a closed data connection, in milliseconds. */
const REASON_MS = 2000

export function createFtpFiles(connection: FtpConnection): RemoteFiles {
  const { client, home } = connection
  const at = (path: string) => (path.startsWith('/') ? path : posix.join(home, path))

  async function sizeOf(path: string): Promise<number | 'unknown' | undefined> {
    try {
      const { message } = await client.send(`SIZE ${at(path)}`)
      const size = /^213[ -](\d+)/.exec(message)?.[1]
      // Some have a text instead of a number for an empty file.
      return size === undefined ? 'unknown' : Number(size)
    } catch (error) {
      if (responseCode(error) === UNAVAILABLE) return undefined
      if (UNKNOWN_COMMAND.has(responseCode(error) ?? 0)) return 'unknown'
      throw error
    }
  }

  /** A folder does not count. */
  async function exists(path: string): Promise<boolean> {
    const size = await sizeOf(path)
    if (size !== 'unknown') return size !== undefined
    const listed = await client.list(posix.dirname(at(path)))
    return listed.some(entry => !entry.isDirectory && entry.name === posix.basename(path))
  }

  return {
    write: (path, object, signal) => writeFile(connection, at(path), object, signal),
    sizeOf,
    exists,
    async isFolder(path) {
      const { code } = await client.sendIgnoringError(`CWD ${at(path)}`)
      return code < 400
    },
    async makeFolder(path) {
      await client.send(`MKD ${at(path)}`)
    },
    async rename(from, to) {
      try {
        await client.rename(at(from), at(to))
      } catch (error) {
        // Some servers do not replace a file.
        if (responseCode(error) === undefined || !(await exists(to))) throw error
        await client.remove(at(to))
        await client.rename(at(from), at(to))
      }
    },
    async remove(path) {
      try {
        await client.remove(at(path))
      } catch (error) {
        if (responseCode(error) !== UNAVAILABLE || (await exists(path))) throw error
      }
    },
    isRefusal: error => responseCode(error) !== undefined,
  }
}

async function writeFile(
  connection: FtpConnection,
  path: string,
  object: UploadObject,
  signal: AbortSignal,
): Promise<void> {
  const { client } = connection
  const body = readCopies(object, signal)
  let isBegun = false
  async function* whenBegun(): AsyncGenerator<Buffer> {
    isBegun = true
    yield* body
    if (object.size === 0) await afterHandshake(client.ftp.dataSocket)
  }
  const stream = Readable.from(whenBegun(), { objectMode: false })
  connection.brokenData = undefined
  try {
    await client.uploadFrom(stream, path)
  } catch (error) {
    const reason = (await hearReason(client, error)) ?? error
    // A server that rejects a file at once may break the data connection, too.
    const cause = isBegun ? connection.brokenData : undefined
    throw cause && reason instanceof Error && reason !== cause ? Object.assign(reason, { cause }) : reason
  } finally {
    stream.destroy() // it is still open if the server rejects the name
  }
}

/** Waits for the reason of a server that closed the data connection. It arrives over the control connection. */
async function hearReason(client: Client, error: unknown): Promise<unknown> {
  if (client.closed || responseCode(error) !== undefined) return undefined
  const reply = client.ftp.handle(undefined, (received, task) => task.resolve(received))
  const reason: unknown = await Promise.race([reply, sleep(REASON_MS, undefined, { ref: false })])
  return responseCode(reason) === undefined ? undefined : reason
}

/**
 * Waits until the TLS handshake is complete. basic-ftp 6.2.3 treats a resumed TLS session as an established one, so it would
 * close the data connection of an empty file during the handshake. Node 20 would do so right after the handshake.
 */
async function afterHandshake(socket: Client['ftp']['dataSocket']): Promise<void> {
  if (!(socket instanceof TLSSocket)) return
  if (socket.getPeerFinished() === undefined) await once(socket, 'secureConnect')
  await nextTurn()
}
