import { createHash } from 'node:crypto'
import { realpath } from 'node:fs/promises'
import { basename } from 'node:path'
import { readClipboard } from '../../clipboard/index.ts'
import { messageOf, UploadError } from '../../errors.ts'
import { type HeldFile, hold } from '../../files/held.ts'
import { bodyOf, type RequestBody } from '../../http/request-body.ts'
import { readDimensions } from '../../payload/dimensions.ts'
import type { Context } from '../context.ts'
import { type Entry, fileNameOf, NOTHING_ON_STDIN } from '../entries.ts'

/** An entry whose bytes are known, or its address. */
export interface Prepared {
  readonly entry: Entry
  /** What it is called there. */
  readonly fileName: string
  /** Undefined for an address. */
  readonly content?: RequestBody
  /** Lets go of the file, once it has been sent or given up. */
  close(): Promise<void>
  readonly facts: {
    /** Bytes. */
    readonly size?: number
    readonly sha256?: string
    /** Of a picture, pixels. */
    readonly width?: number
    readonly height?: number
  }
}

/** Where bytes come from that are not in a file. */
type EntrySource = Pick<Context, 'env' | 'stdin'>

/** Largest picture taken from the clipboard, bytes; for everything else the server decides. */
const CLIPBOARD_BYTES = 100 * 1024 * 1024
/** How far the header of a picture may reach, bytes: metadata may stand before its size. */
const HEAD_BYTES = 256 * 1024
/** Read from a file at once, bytes. */
const CHUNK_BYTES = 256 * 1024
/** The server finds out by itself. */
const ANY_TYPE = 'application/octet-stream'

/**
 * Opens an entry and reads it once. What is sent later are the same bytes: the file is held until then, and is not read any
 * more when it was changed.
 *
 * @throws Error that says why it can't be sent
 */
export async function prepare(entry: Entry, context: EntrySource): Promise<Prepared> {
  if (entry.fault !== undefined) throw new Error(entry.fault)
  if (entry.kind === 'url') return { entry, fileName: '', facts: {}, close: async () => {} }
  const { content, fileName, close = async () => {} } = await open(entry, context)
  const hash = createHash('sha256')
  const head: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of content.chunks(new AbortController().signal)) {
      hash.update(chunk)
      if (size < HEAD_BYTES) head.push(Buffer.from(chunk))
      size += chunk.length
    }
  } catch {
    await close()
    goneMeanwhile()
  }
  const facts = { size, sha256: hash.digest('hex'), ...readDimensions(Buffer.concat(head)) }
  return { entry, fileName, content, facts, close }
}

interface OpenedEntry {
  readonly content: RequestBody
  readonly fileName: string
  readonly close?: () => Promise<void>
}

/** What was opened is what counts: since it was found, its name may have come to lead elsewhere. */
async function openFile({
  path,
  faultOf,
}: Pick<Entry, 'path' | 'faultOf'>): Promise<Omit<OpenedEntry, 'fileName'>> {
  const file = await realpath(path).then(hold).catch(goneMeanwhile)
  try {
    const fault = file.status.isFile() ? await faultOf?.(file.real) : 'it is not a regular file'
    if (fault) throw new Error(fault)
    const content = { chunks: () => readUnchanged(file), length: file.status.size, contentType: ANY_TYPE }
    return { content, close: () => file.close() }
  } catch (error) {
    await file.close()
    throw error
  }
}

/**
 * The bytes of a file that is as it was when it was opened.
 *
 * @throws UploadError `source_failed`
 */
async function* readUnchanged({ handle, status }: HeldFile): AsyncGenerator<Buffer> {
  const memory = Buffer.allocUnsafeSlow(Math.min(status.size, CHUNK_BYTES))
  const fail = (error: unknown): never => {
    throw new UploadError('source_failed', `reading the file failed: ${messageOf(error)}`)
  }
  for (let position = 0; position < status.size; ) {
    const length = Math.min(memory.length, status.size - position)
    const { bytesRead } = await handle.read(memory, 0, length, position).catch(fail)
    const { size, mtimeMs } = await handle.stat().catch(fail)
    if (bytesRead === 0 || size !== status.size || mtimeMs !== status.mtimeMs)
      throw new UploadError('source_failed', 'the file changed while it was being sent')
    position += bytesRead
    yield memory.subarray(0, bytesRead)
  }
}

function goneMeanwhile(): never {
  throw new Error('the file was deleted or changed before it was sent')
}

async function open(entry: Entry, { env, stdin }: EntrySource): Promise<OpenedEntry> {
  if (entry.kind === 'file') return { ...(await openFile(entry)), fileName: fileNameOf(entry) }
  if (entry.kind === 'clipboard') {
    const content = await readClipboard({ env, maxBytes: CLIPBOARD_BYTES })
    if (content.kind === 'image') return { content: bodyOf(content.body, ANY_TYPE), fileName: content.name }
    if (content.kind === 'path') return { ...(await openFile(content)), fileName: basename(content.path) }
    throw new Error('the clipboard contains a URL. Pass it as an argument')
  }
  const chunks: Uint8Array[] = []
  for await (const chunk of stdin) chunks.push(chunk)
  if (chunks.length === 0) throw new Error(NOTHING_ON_STDIN)
  return { content: bodyOf(Buffer.concat(chunks), ANY_TYPE), fileName: entry.fileName ?? 'file' }
}
