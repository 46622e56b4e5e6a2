import { realpath } from 'node:fs/promises'
import { hold } from '../files/held.ts'
import { SNIFF_BYTES, sniffType } from '../payload/sniff.ts'

/**
 * Whether a file is a picture by its bytes. A note written by somebody else may name any file of this machine, and what
 * is uploaded may be public.
 *
 * @throws an error of the system
 */
export async function isPicture(path: string): Promise<boolean> {
  const file = await hold(await realpath(path))
  try {
    if (!file.status.isFile()) return false
    const { bytesRead, buffer } = await file.handle.read(Buffer.alloc(SNIFF_BYTES), 0, SNIFF_BYTES, 0)
    const { contentType } = await sniffType(buffer.subarray(0, bytesRead))
    return contentType.startsWith('image/')
  } finally {
    await file.close()
  }
}
