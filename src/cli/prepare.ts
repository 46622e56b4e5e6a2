import { createHash } from 'node:crypto'
import { openAsBlob } from 'node:fs'
import { basename } from 'node:path'
import { readDimensions } from '../payload/dimensions.ts'
import { readClipboard } from '../uploader/sources/clipboard/index.ts'
import { type Entry, fileNameOf, NOTHING_ON_STDIN } from './entries.ts'
import type { Terminal } from './terminal.ts'

/** An entry whose bytes are known, or its address. */
export interface Part {
  readonly entry: Entry
  /** What it is called there. */
  readonly fileName: string
  /** Undefined for an address. */
  readonly blob?: Blob
  readonly facts: {
    /** Bytes. */
    readonly size?: number
    readonly sha256?: string
    /** Of a picture, pixels. */
    readonly width?: number
    readonly height?: number
  }
}

/** Largest picture taken from the clipboard, bytes; for everything else the server decides. */
const CLIPBOARD_BYTES = 100 * 1024 * 1024
/** How far the header of a picture may reach, bytes: metadata may stand before its size. */
const HEAD_BYTES = 256 * 1024

/**
 * Opens an entry and reads it once. What is sent later are the same bytes: a blob of a file refuses to be read when the
 * file was changed.
 *
 * @throws Error that says why it can't be sent
 */
export async function prepare(entry: Entry, terminal: Terminal): Promise<Part> {
  if (entry.fault !== undefined) throw new Error(entry.fault)
  if (entry.kind === 'url') return { entry, fileName: '', facts: {} }
  const [blob, fileName] = await open(entry, terminal)
  const hash = createHash('sha256')
  const head: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of blob.stream()) {
      hash.update(chunk)
      if (size < HEAD_BYTES) head.push(chunk)
      size += chunk.length
    }
  } catch {
    goneMeanwhile()
  }
  const facts = { size, sha256: hash.digest('hex'), ...readDimensions(Buffer.concat(head)) }
  return { entry, fileName, blob, facts }
}

async function openFile(path: string): Promise<Blob> {
  try {
    return await openAsBlob(path)
  } catch {
    return goneMeanwhile()
  }
}

/** Node says no reason. */
function goneMeanwhile(): never {
  throw new Error('it was removed or changed before it could be sent')
}

async function open(entry: Entry, { env, stdin }: Terminal): Promise<[Blob, string]> {
  if (entry.kind === 'file') return [await openFile(entry.path), fileNameOf(entry)]
  if (entry.kind === 'clipboard') {
    const content = await readClipboard({ env, maxBytes: CLIPBOARD_BYTES })
    if (content.kind === 'image') return [new Blob([content.body]), content.name]
    if (content.kind === 'path') return [await openAsBlob(content.path), basename(content.path)]
    throw new Error('the clipboard holds an address: give it as an argument')
  }
  const chunks: Uint8Array[] = []
  for await (const chunk of stdin) chunks.push(chunk)
  if (chunks.length === 0) throw new Error(NOTHING_ON_STDIN)
  return [new Blob([Buffer.concat(chunks)]), entry.fileName ?? 'file']
}
