import type { FileHandle } from 'node:fs/promises'
import { baseName, splitExtension } from './file-name.ts'
import type { FileType } from './formats/file-type.ts'
import { findSignature } from './signatures.ts'
import { findMarkup, mayBeMarkup, readText, typeOfText } from './text-types.ts'

/** Bytes from the start of most files that `sniffType` needs. */
export const SNIFF_BYTES = 4100
/** Comments and declarations of any length can precede the first tag of markup. */
const MARKUP_BYTES = 64 * 1024

const UNKNOWN: FileType = { contentType: 'application/octet-stream', extension: '' }
const TEXT: FileType = { contentType: 'text/plain', extension: '.txt' }

/** Number of bytes from the start of a file that `sniffType` needs, by the first of them. */
export function sniffLength(head: Uint8Array): number {
  return mayBeMarkup(head) ? MARKUP_BYTES : SNIFF_BYTES
}

/**
 * Detects the type of a file from its first bytes. The Content-Type is ignored. The extension of its name only says which
 * kind of text a text is. It never hides markup that a browser would run.
 */
export function sniffType(head: Uint8Array, name = ''): FileType {
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.length)
  const text = readText(bytes)
  const named = text === undefined ? undefined : typeOfText(splitExtension(baseName(name))[1])
  const markup = mayBeMarkup(bytes) ? findMarkup(text ?? bytes.toString('latin1')) : undefined
  if (markup) return (markup.isGuess && named) || markup.type
  if (text === undefined) return findSignature(bytes, 'bytes') ?? UNKNOWN
  return findSignature(bytes, 'text') ?? named ?? TEXT
}

/** The same for an open file. */
export async function sniffFile(handle: FileHandle, name?: string): Promise<FileType> {
  const read = async (length: number) => {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, 0)
    return buffer.subarray(0, bytesRead)
  }
  const head = await read(SNIFF_BYTES)
  const length = sniffLength(head)
  return sniffType(head.length === SNIFF_BYTES && length > SNIFF_BYTES ? await read(length) : head, name)
}
