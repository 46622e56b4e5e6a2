import { once } from 'node:events'
import { Readable } from 'node:stream'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { TLSSocket } from 'node:tls'
import type { Client } from 'basic-ftp'
import { UploadError } from '../../errors.ts'
import { createKnownFolders, type KnownFolders } from '../shared/known-folders.ts'
import { replyCode } from './explain.ts'

/** Reply code for files that don't exist, are forbidden or can't be replaced (RFC 959, section 4.2). */
const UNAVAILABLE = 550

/** Reply codes for an unknown command. */
const UNKNOWN_COMMAND = new Set([500, 502, 504])

/** Time limit for the reason after a closed data connection, in milliseconds. */
const REASON_MS = 2000

type Chunks = AsyncIterable<Buffer> | Iterable<Buffer>

/** Sends a body, and compares its size with the size that the server reports, if the server supports it. */
export async function writeFile(client: Client, path: string, body: Chunks, size: number): Promise<void> {
  const stream = Readable.from(size === 0 ? afterHandshake(client, body) : body, { objectMode: false })
  try {
    await client.uploadFrom(stream, path)
  } catch (error) {
    throw (await hearReason(client, error)) ?? error
  } finally {
    stream.destroy() // it is still open if the server rejects the name
  }
  const stored = await askSize(client, path)
  if (stored === undefined || stored === size) return
  const message = `The server stored only ${stored} of ${size} bytes although it reported success. Try again.`
  throw new UploadError('delivery_failed', message, { retryable: true })
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
    await client.size(path)
    return true
  } catch (error) {
    if (replyCode(error) === UNAVAILABLE) return false
    throw error
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

async function askSize(client: Client, path: string): Promise<number | undefined> {
  try {
    return await client.size(path)
  } catch (error) {
    if (UNKNOWN_COMMAND.has(replyCode(error) ?? 0)) return undefined
    throw error
  }
}
