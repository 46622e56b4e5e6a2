import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { inMemory } from '../../body.ts'
import { readClipboard } from '../../clipboard/index.ts'
import { messageOf, systemCode, UploadError } from '../../errors.ts'
import { type HeldFile, hold } from '../../files/held.ts'
import type { TypedBody } from '../../http/form-body.ts'
import { type Dimensions, readDimensions } from '../../payload/dimensions.ts'
import type { Context } from '../context.ts'
import { type Entry, fileNameOf, goneMeanwhile, NOTHING_ON_STDIN, openNamed } from '../entries.ts'

/** An entry that is ready to be sent: its bytes, or its URL. */
export interface Part {
  readonly entry: Entry
  /** Name at the destination. */
  readonly fileName: string
  /** Undefined for a URL. */
  readonly content?: TypedBody
  /** Closes the file after it was sent or has failed. */
  close(): Promise<void>
  readonly facts: {
    /** Bytes. */
    readonly size?: number
    readonly sha256?: string
    /** Size of an image, in pixels. */
    readonly width?: number
    readonly height?: number
  }
}

/** The sources of bytes that are not in a file. */
type EntrySource = Pick<Context, 'env' | 'stdin'>

/** Largest image taken from the clipboard, bytes; for everything else the server decides. */
const CLIPBOARD_BYTES = 100 * 1024 * 1024
/** Size of one read from a file, bytes. The header of an image fits into the first one, with metadata before its size. */
const CHUNK_BYTES = 256 * 1024
const ANY_TYPE = 'application/octet-stream'

/**
 * Opens an entry and reads it once to compute its hash. The file stays open, and sending fails if it changes in between, so
 * that the sent bytes are those of the hash.
 *
 * @throws the reason of the signal, or an UploadError with the reason why the entry can't be sent
 */
export async function openPart(entry: Entry, context: EntrySource, signal: AbortSignal): Promise<Part> {
  const { fault, code = 'source_failed' } = entry
  if (fault !== undefined) throw new UploadError(code, fault)
  if (entry.kind === 'url') return { entry, fileName: '', facts: {}, close: async () => {} }
  const { content, fileName, close = async () => {} } = await open(entry, context, signal)
  const hash = createHash('sha256')
  let dimensions: Dimensions | undefined
  let size = 0
  try {
    for await (const chunk of content.read(signal)) {
      signal.throwIfAborted()
      hash.update(chunk)
      if (size === 0) dimensions = readDimensions(chunk)
      size += chunk.length
    }
  } catch {
    await close()
    signal.throwIfAborted()
    goneMeanwhile()
  }
  return { entry, fileName, content, facts: { size, sha256: hash.digest('hex'), ...dimensions }, close }
}

interface OpenedEntry {
  readonly content: TypedBody
  readonly fileName: string
  readonly close?: () => Promise<void>
}

async function open(entry: Entry, { env, stdin }: EntrySource, signal: AbortSignal): Promise<OpenedEntry> {
  const fileName = fileNameOf(entry)
  if (entry.open) return ofFile(await entry.open(), fileName)
  if (entry.bytes) return ofMemory(entry.bytes, fileName)
  if (entry.kind === 'stdin')
    return ofFile(await storeStdin(stdin, env['TMPDIR'] || tmpdir()), fileName || 'file')
  const content = await readClipboard({ env, maxBytes: CLIPBOARD_BYTES, signal })
  if (content.kind === 'image') return ofMemory(content.body, content.name)
  if (content.kind === 'path') return ofFile(await openNamed(content.path), basename(content.path))
  throw new Error('the clipboard contains a URL. Pass it as an argument')
}

/** The server detects the media type. */
const ofMemory = (bytes: Uint8Array, fileName: string): OpenedEntry => ({
  fileName,
  content: { ...inMemory(bytes), contentType: ANY_TYPE },
})

const ofFile = (file: HeldFile, fileName: string): OpenedEntry => ({
  fileName,
  content: { read: () => readUnchanged(file), size: file.status.size, contentType: ANY_TYPE },
  close: () => file.close(),
})

/**
 * Reads a file, and fails if it has changed since it was opened.
 *
 * @throws UploadError `source_failed`
 */
async function* readUnchanged({ handle, status }: HeldFile): AsyncGenerator<Buffer> {
  // The same memory again and again: new memory for each chunk takes longer than the hash.
  const memory = Buffer.allocUnsafeSlow(Math.min(CHUNK_BYTES, status.size))
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

/** Standard input in a temporary file, because it may be larger than the memory, and be sent again. */
async function storeStdin(stdin: EntrySource['stdin'], parent: string): Promise<HeldFile> {
  const fail = (error: unknown): never => {
    if (systemCode(error) === undefined) throw error
    const reason = `storing standard input in ${parent} failed: ${messageOf(error)}`
    throw new UploadError('source_failed', `${reason}. Set TMPDIR to another folder`, { cause: error })
  }
  const folder = await mkdtemp(join(parent, 'upload-server-')).catch(fail)
  const remove = () => rm(folder, { recursive: true, force: true }).catch(() => {})
  try {
    const path = join(folder, 'stdin')
    await pipeline(stdin, createWriteStream(path, { flags: 'wx', mode: 0o600 })).catch(fail)
    const file = await hold(path)
    const close = () => file.close().finally(remove)
    if (file.status.size > 0) return { ...file, close }
    await close()
    throw new Error(NOTHING_ON_STDIN)
  } finally {
    // Already here, because the process may be killed. Windows only removes what is closed.
    await remove()
  }
}
