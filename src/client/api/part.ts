import { createHash } from 'node:crypto'
import { mkdtemp, open as openFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { inMemory } from '../../body.ts'
import { readClipboard } from '../../clipboard/index.ts'
import { messageOf, systemCode, UploadError } from '../../errors.ts'
import type { HeldFile } from '../../files/held.ts'
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
/** Maximum size of standard input in memory, bytes. */
const STDIN_BYTES = 8 * 1024 * 1024
/** How far the header of an image may reach, bytes: metadata may stand before its size. */
const HEAD_BYTES = 256 * 1024
/** Size of one read from a file, bytes. */
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
  const head: Uint8Array[] = []
  let dimensions: Dimensions | undefined
  let size = 0
  try {
    for await (const chunk of content.read(signal)) {
      signal.throwIfAborted()
      hash.update(chunk)
      // Most images are not copied, because their first chunk is enough.
      if (size === 0 && chunk.length >= Math.min(content.size, HEAD_BYTES)) dimensions = readDimensions(chunk)
      else if (size < HEAD_BYTES) head.push(Buffer.from(chunk.subarray(0, HEAD_BYTES - size)))
      size += chunk.length
    }
  } catch {
    await close()
    signal.throwIfAborted()
    goneMeanwhile()
  }
  const facts = {
    ...{ size, sha256: hash.digest('hex') },
    ...(dimensions ?? readDimensions(Buffer.concat(head))),
  }
  return { entry, fileName, content, facts, close }
}

interface OpenedEntry {
  readonly content: TypedBody
  readonly fileName: string
  readonly close?: () => Promise<void>
}

/** The server detects the media type. */
const untyped = (bytes: Parameters<typeof inMemory>[0]) => ({ ...inMemory(bytes), contentType: ANY_TYPE })

function bodyOfFile(file: HeldFile): Omit<OpenedEntry, 'fileName'> {
  const content = { read: () => readUnchanged(file), size: file.status.size, contentType: ANY_TYPE }
  return { content, close: () => file.close() }
}

/** Memory of files that were read, for the next ones: new memory takes longer than the hash. */
const spare: Buffer[] = []
const MOST_SPARE = 16

/**
 * Reads a file, and fails if it has changed since it was opened.
 *
 * @throws UploadError `source_failed`
 */
async function* readUnchanged({ handle, status }: HeldFile): AsyncGenerator<Buffer> {
  const memory = spare.pop() ?? Buffer.allocUnsafeSlow(CHUNK_BYTES)
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
  // Not if it ends early, because a socket may still use the last chunk.
  if (spare.length < MOST_SPARE) spare.push(memory)
}

async function open(entry: Entry, { env, stdin }: EntrySource, signal: AbortSignal): Promise<OpenedEntry> {
  if (entry.open) return { ...bodyOfFile(await entry.open()), fileName: fileNameOf(entry) }
  if (entry.kind === 'clipboard') {
    const content = await readClipboard({ env, maxBytes: CLIPBOARD_BYTES, signal })
    if (content.kind === 'image') return { content: untyped(content.body), fileName: content.name }
    if (content.kind === 'path')
      return { ...bodyOfFile(await openNamed(content.path)), fileName: basename(content.path) }
    throw new Error('the clipboard contains a URL. Pass it as an argument')
  }
  if (entry.bytes) return { content: untyped(Buffer.from(entry.bytes)), fileName: fileNameOf(entry) }
  return { ...(await readStdin(stdin, env['TMPDIR'] || tmpdir())), fileName: entry.fileName ?? 'file' }
}

/** Reads standard input: in memory if it is small, otherwise into a temporary file. */
async function readStdin(
  stdin: EntrySource['stdin'],
  folder: string,
): Promise<Omit<OpenedEntry, 'fileName'>> {
  let chunks: Uint8Array[] = []
  let size = 0
  let file: HeldFile | undefined
  try {
    for await (const chunk of stdin) {
      chunks.push(chunk)
      size += chunk.length
      if (size <= STDIN_BYTES) continue
      file ??= await openTemporary(folder)
      await file.handle.writev(chunks)
      chunks = []
    }
    if (size === 0) throw new Error(NOTHING_ON_STDIN)
    if (file === undefined) return { content: untyped(chunks) }
    return bodyOfFile({ ...file, status: await file.handle.stat() })
  } catch (error) {
    await file?.close()
    if (systemCode(error) === undefined) throw error
    throw new UploadError(
      'source_failed',
      `standard input is larger than ${STDIN_BYTES / 1024 / 1024} MiB, and storing it in ${folder} failed: ${messageOf(error)}. Set TMPDIR to another folder`,
      { cause: error },
    )
  }
}

/** A file that is removed when it is closed, and where the system permits that, at once. */
async function openTemporary(parent: string): Promise<HeldFile> {
  const folder = await mkdtemp(join(parent, 'upload-server-'))
  const remove = () => rm(folder, { recursive: true, force: true }).catch(() => {})
  const path = join(folder, 'stdin')
  try {
    const handle = await openFile(path, 'wx+', 0o600)
    await remove()
    const close = async () => {
      await handle.close()
      await remove()
    }
    return { handle, path, real: path, status: await handle.stat(), close }
  } catch (error) {
    await remove()
    throw error
  }
}
