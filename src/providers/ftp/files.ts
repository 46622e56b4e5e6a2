import { once } from 'node:events'
import { Readable } from 'node:stream'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { TLSSocket } from 'node:tls'
import type { Client } from 'basic-ftp'
import { Problem } from '../../problem.ts'
import { createKnownFolders, type KnownFolders } from '../shared/known-folders.ts'
import { parentOf } from '../shared/remote-path.ts'
import { replyCode } from './explain.ts'

/** Reply code for files that don't exist, are forbidden or can't be replaced (RFC 959, section 4.2). */
const UNAVAILABLE = 550

/** Reply codes for an unknown command. */
const UNKNOWN_COMMAND = new Set([500, 502, 504])

/** Time limit for the reason after a closed data connection, in milliseconds. */
const REASON_MS = 2000

/** The failure of the last data connection, which is the cause of what the server says of it. */
export const brokenData = new WeakMap<Client, Error>()

type Chunks = AsyncIterable<Buffer> | Iterable<Buffer>

/** Sends a body, and compares its size with the size that the server reports, if the server supports it. */
export async function writeFile(client: Client, path: string, body: Chunks, size: number): Promise<void> {
  let isBegun = false
  async function* whenBegun(): AsyncGenerator<Buffer> {
    isBegun = true
    yield* size === 0 ? afterHandshake(client, body) : body
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
  const stored = await readSize(client, path)
  if (stored === undefined || stored === size) return
  throw new Problem(`the server stored only ${stored} of ${size} bytes although it reported success`, {
    retryable: true,
  })
}

/** Waits for the reason of a server that closed the data connection. It arrives over the control connection. */
async function hearReason(client: Client, error: unknown): Promise<unknown> {
  if (client.closed || replyCode(error) !== undefined) return undefined
  const reply = client.ftp.handle(undefined, (received, task) => task.resolve(received))
  const reason: unknown = await Promise.race([reply, sleep(REASON_MS, undefined, { ref: false })])
  return replyCode(reason) === undefined ? undefined : reason
}

/**
 * Delays the body until the TLS handshake is complete. basic-ftp 6.2.3 treats a resumed TLS session as an established one, so
 * it would close the data connection of an empty file during the handshake. Node 20 would do so right after the handshake.
 */
async function* afterHandshake(client: Client, body: Chunks): AsyncGenerator<Buffer> {
  yield* body
  const socket = client.ftp.dataSocket
  if (!(socket instanceof TLSSocket)) return
  if (socket.getPeerFinished() === undefined) await once(socket, 'secureConnect')
  await nextTurn()
}

/** Renames a file. Removes an existing file first if the server does not replace it. */
export async function replaceFile(client: Client, from: string, to: string): Promise<void> {
  try {
    await client.rename(from, to)
  } catch (error) {
    if (replyCode(error) === undefined || !(await fileExists(client, to))) throw error
    await client.remove(to)
    await client.rename(from, to)
  }
}

/** Returns whether a file exists. A folder does not count. */
export async function fileExists(client: Client, path: string): Promise<boolean> {
  try {
    await client.send(`SIZE ${path}`)
    return true
  } catch (error) {
    const code = replyCode(error) ?? 0
    if (code === UNAVAILABLE) return false
    if (!UNKNOWN_COMMAND.has(code)) throw error
    const listed = await client.list(parentOf(path))
    return listed.some(entry => !entry.isDirectory && entry.name === path.slice(path.lastIndexOf('/') + 1))
  }
}

/** Removes a file, which need not exist. */
export async function removeFile(client: Client, path: string): Promise<void> {
  try {
    await client.remove(path)
  } catch (error) {
    if (replyCode(error) !== UNAVAILABLE || (await fileExists(client, path))) throw error
  }
}

export function createFtpFolders(): KnownFolders<Client> {
  return createKnownFolders<Client>({
    async isThere(client, path) {
      const { code } = await client.sendIgnoringError(`CWD ${path}`)
      return code < 400
    },
    async make(client, path) {
      await client.send(`MKD ${path}`)
    },
  })
}

/** Returns the size of a file if the server reports it. Some have a text instead of a number for an empty file. */
async function readSize(client: Client, path: string): Promise<number | undefined> {
  try {
    const size = /^213[ -](\d+)/.exec((await client.send(`SIZE ${path}`)).message)?.[1]
    return size === undefined ? undefined : Number(size)
  } catch (error) {
    if (UNKNOWN_COMMAND.has(replyCode(error) ?? 0)) return undefined
    throw error
  }
}
