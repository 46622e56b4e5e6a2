import { once } from 'node:events'
import { Readable } from 'node:stream'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { TLSSocket } from 'node:tls'
import type { Client } from 'basic-ftp'
import { readCopies } from '../../body.ts'
import { Problem } from '../../problem.ts'
import type { UploadObject } from '../contract.ts'
import { type RemoteFiles, responseCode } from '../shared/file-tree.ts'
import { joinRemote, parentOf } from '../shared/remote-path.ts'
import type { Explain } from './explain.ts'

/** Reply code for files that don't exist, are forbidden or can't be replaced (RFC 959, section 4.2). */
const UNAVAILABLE = 550

/** Reply codes for an unknown command. */
const UNKNOWN_COMMAND = new Set([500, 502, 504])

/** Time limit for the reason after a closed data connection, in milliseconds. */
const REASON_MS = 2000

/** A connection that runs one command at a time. */
export interface FtpConnection {
  readonly client: Client
  /** Absolute path at which relative paths start, so that nothing depends on the working directory of the connection. */
  readonly home: string
}

/** The failure of the last data connection, which is the cause of what the server says of it. */
export const brokenData = new WeakMap<Client, Error>()

/** @param explainStoring explains why a file can't be stored */
export function createFtpFiles({ client, home }: FtpConnection, explainStoring: Explain): RemoteFiles {
  const at = (path: string) => (path.startsWith('/') ? path : joinRemote(home, path))
  const store = (work: Promise<unknown>) =>
    work.then(
      () => {},
      error => {
        throw explainStoring(error)
      },
    )
  return {
    write: (path, object, signal) => store(writeFile(client, at(path), object, signal)),
    async sizeOf(path) {
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
    },
    exists: path => fileExists(client, at(path)),
    async isFolder(path) {
      const { code } = await client.sendIgnoringError(`CWD ${at(path)}`)
      return code < 400
    },
    async makeFolder(path) {
      await client.send(`MKD ${at(path)}`)
    },
    rename: (from, to) => store(replaceFile(client, at(from), at(to))),
    remove: path => removeFile(client, at(path)),
    isRefusal: error => responseCode(error instanceof Problem ? error.cause : error) !== undefined,
  }
}

async function writeFile(
  client: Client,
  path: string,
  object: UploadObject,
  signal: AbortSignal,
): Promise<void> {
  const body = readCopies(object, signal)
  let isBegun = false
  async function* whenBegun(): AsyncGenerator<Buffer> {
    isBegun = true
    yield* object.size === 0 ? afterHandshake(client, body) : body
  }
  const stream = Readable.from(whenBegun(), { objectMode: false })
  brokenData.delete(client)
  try {
    await client.uploadFrom(stream, path)
  } catch (error) {
    const reason = (await hearReason(client, error)) ?? error
    // A server that rejects a file at once may break the data connection, too.
    const cause = isBegun ? brokenData.get(client) : undefined
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
 * Delays the body until the TLS handshake is complete. basic-ftp 6.2.3 treats a resumed TLS session as an established one, so
 * it would close the data connection of an empty file during the handshake. Node 20 would do so right after the handshake.
 */
async function* afterHandshake(client: Client, body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield* body
  const socket = client.ftp.dataSocket
  if (!(socket instanceof TLSSocket)) return
  if (socket.getPeerFinished() === undefined) await once(socket, 'secureConnect')
  await nextTurn()
}

/** Renames a file. Removes an existing file first if the server does not replace it. */
async function replaceFile(client: Client, from: string, to: string): Promise<void> {
  try {
    await client.rename(from, to)
  } catch (error) {
    if (responseCode(error) === undefined || !(await fileExists(client, to))) throw error
    await client.remove(to)
    await client.rename(from, to)
  }
}

/** Returns whether a file exists. A folder does not count. */
async function fileExists(client: Client, path: string): Promise<boolean> {
  try {
    await client.send(`SIZE ${path}`)
    return true
  } catch (error) {
    const code = responseCode(error) ?? 0
    if (code === UNAVAILABLE) return false
    if (!UNKNOWN_COMMAND.has(code)) throw error
    const listed = await client.list(parentOf(path))
    return listed.some(entry => !entry.isDirectory && entry.name === path.slice(path.lastIndexOf('/') + 1))
  }
}

async function removeFile(client: Client, path: string): Promise<void> {
  try {
    await client.remove(path)
  } catch (error) {
    if (responseCode(error) !== UNAVAILABLE || (await fileExists(client, path))) throw error
  }
}
