import { once } from 'node:events'
import { Readable } from 'node:stream'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { TLSSocket } from 'node:tls'
import type { Client } from 'basic-ftp'
import { UploadError } from '../../errors.ts'
import { createKnownFolders, type KnownFolders } from '../shared/known-folders.ts'
import { replyCode } from './explain.ts'

/** "Not available", which servers say for what is missing, forbidden and in the way alike (RFC 959, section 4.2). */
const UNAVAILABLE = 550

/** What a server that does not know a command answers. */
const UNKNOWN_COMMAND = new Set([500, 502, 504])

/** How long a server may take to say why it broke off. */
const REASON_MS = 2000

type Chunks = AsyncIterable<Buffer> | Iterable<Buffer>

/** Sends a body and asks the server how much of it arrived, where it can tell. */
export async function writeFile(client: Client, path: string, body: Chunks, size: number): Promise<void> {
  const stream = Readable.from(size === 0 ? afterHandshake(client, body) : body, { objectMode: false })
  try {
    await client.uploadFrom(stream, path)
  } catch (error) {
    throw (await hearReason(client, error)) ?? error
  } finally {
    stream.destroy() // it is still open when the server refuses the name
  }
  const stored = await askSize(client, path)
  if (stored === undefined || stored === size) return
  const message = `The server stored only ${stored} of ${size} bytes although it reported success. Try again.`
  throw new UploadError('delivery_failed', message, { retryable: true })
}

/** A server that wants no more bytes breaks the data connection off, and then says why over the other one. */
async function hearReason(client: Client, error: unknown): Promise<unknown> {
  if (client.closed || replyCode(error) !== undefined) return undefined
  const reply = client.ftp.handle(undefined, (said, task) => task.resolve(said))
  const said: unknown = await Promise.race([reply, sleep(REASON_MS, undefined, { ref: false })])
  return replyCode(said) === undefined ? undefined : said
}

/**
 * basic-ftp 6.2.3 takes a resumed TLS session for an established one, so it would close the data connection of an empty
 * file in the middle of the handshake. In the very turn the handshake ends, Node 20 would do the same.
 */
async function* afterHandshake(client: Client, body: Chunks): AsyncGenerator<Buffer> {
  yield* body
  const socket = client.ftp.dataSocket
  if (!(socket instanceof TLSSocket)) return
  if (socket.getPeerFinished() === undefined) await once(socket, 'secureConnect')
  await nextTurn()
}

/** Renames; where the server does not replace a file that is there, it is removed first. */
export async function replaceFile(client: Client, from: string, to: string): Promise<void> {
  try {
    await client.rename(from, to)
  } catch (error) {
    if (replyCode(error) === undefined || !(await fileExists(client, to))) throw error
    await client.remove(to)
    await client.rename(from, to)
  }
}

/** Whether a file of that name is there. Folders are none. */
export async function fileExists(client: Client, path: string): Promise<boolean> {
  try {
    await client.size(path)
    return true
  } catch (error) {
    if (replyCode(error) === UNAVAILABLE) return false
    throw error
  }
}

/** Removes a file; it may be absent. */
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
