import { closeSync, openSync, renameSync, unlinkSync, writevSync } from 'node:fs'
import { join, sep } from 'node:path'
import type { Spool } from '../../payload/spool.ts'
import type { UploadObject } from '../contract.ts'
import type { Folders } from './folders.ts'
import { splitKey } from './key-path.ts'
import { MAX_BUFFERED_BYTES } from './writer.ts'

interface Place {
  readonly directory: string
  readonly folders: Pick<Folders, 'findAtOnce'>
  readonly spool: Pick<Spool, 'nameAtOnce'>
  readonly fileMode: number
}

/**
 * Stores small files as `createWriter` does, but in the event loop: waking a thread takes longer than its work. Only for a disk
 * that the server waits for anyway.
 *
 * @returns stores an object, or returns false and leaves nothing of it if anything is in the way. The writer then stores it, or
 *   says what is wrong
 */
export function createAtOnce({
  directory,
  folders,
  spool,
  fileMode,
}: Place): (object: UploadObject) => boolean {
  return object => {
    const chunks = object.size <= MAX_BUFFERED_BYTES ? object.chunks?.() : undefined
    const temporary = chunks && spool.nameAtOnce()
    if (chunks === undefined || temporary === undefined) return false
    try {
      const { parents, file } = splitKey(object.key)
      const folder = folders.findAtOnce(join(directory, ...parents))
      if (folder === undefined) return false
      if (writeNew(temporary, chunks, fileMode) === object.size) {
        renameSync(temporary, folder.path + sep + file)
        return true
      }
    } catch {}
    discard(temporary)
    return false
  }
}

/** @returns the number of bytes written, which may be less than all of them */
function writeNew(path: string, chunks: readonly Uint8Array[], mode: number): number {
  const file = openSync(path, 'wx', mode)
  try {
    return chunks.length === 0 ? 0 : writevSync(file, chunks)
  } finally {
    closeSync(file)
  }
}

function discard(path: string): void {
  try {
    unlinkSync(path)
  } catch {}
}
