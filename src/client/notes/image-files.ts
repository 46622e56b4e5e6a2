import { realpath, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { messageOf, UploadError } from '../../errors.ts'
import { ForeignName, type ForeignNameRules } from '../../files/foreign-name.ts'
import type { HeldFile } from '../../files/held.ts'
import { isBelowAny } from '../../files/own-paths.ts'
import { findWindowsFault } from '../../files/windows-path.ts'
import { sniffFile } from '../../payload/sniff.ts'
import type { Entry } from '../entries.ts'

/** The reason for a file that is not there. */
export const ABSENT = 'the file does not exist'

/** A file, or why none of the paths is one that may be uploaded. */
export type FoundFile =
  | { readonly is: 'file'; readonly entry: Entry }
  | { readonly is: 'missing'; readonly reason: string }

/** Finds the first of some absolute paths that is an image. */
export type ImageFinder = (paths: readonly string[]) => Promise<FoundFile>

/**
 * Finds the images that notes may name. A note may come from others, and what is uploaded may be public: an image must
 * be below one of the folders, without a name on the way there that begins with a dot, and be an image by its bytes.
 *
 * @returns the finder for the notes that may name files in these folders. Each file is looked at once
 */
export function createImageFinders(): (folders: readonly [string, ...string[]]) => ImageFinder {
  const known = new Map<string, Promise<FoundFile>>()
  return folders => {
    const look = (path: string): Promise<FoundFile> => {
      const key = [path, ...folders].join('\0')
      const found = known.get(key) ?? lookAt(path, folders)
      known.set(key, found)
      return found
    }
    return async paths => {
      let refused: FoundFile | undefined
      for (const path of paths) {
        const found = await look(path)
        if (found.is === 'file') return found
        if (found.reason !== ABSENT) refused ??= found
      }
      return refused ?? { is: 'missing', reason: ABSENT }
    }
  }
}

async function lookAt(path: string, folders: readonly [string, ...string[]]): Promise<FoundFile> {
  // Only the user sees the result. On Windows, even a lookup may connect to another machine, so such paths are rejected first.
  const real = findWindowsFault(path, folders) ? undefined : await realpath(path).catch(() => undefined)
  if (real === undefined) return { is: 'missing', reason: ABSENT }
  const advice = `If you trust the note, add --root ${dirname(real)}`
  const open = () => openImage(path, { folders, advice })
  try {
    const file = await open()
    await file.close()
    return { is: 'file', entry: { kind: 'file', name: path, path, size: file.status.size, open } }
  } catch (error) {
    return { is: 'missing', reason: messageOf(error) }
  }
}

/** @throws UploadError */
async function openImage(path: string, rules: ForeignNameRules): Promise<HeldFile> {
  const file = await new ForeignName(path, rules).open()
  try {
    const { contentType } = await sniffFile(file.handle)
    if (contentType.startsWith('image/')) return file
    throw new UploadError('source_failed', 'it is not an image')
  } catch (error) {
    await file.close()
    throw error
  }
}

/**
 * The repository that a note is in. Undefined if there is none, or if it contains the home folder of the user: people keep
 * their settings in such repositories.
 */
export async function findRepository(folder: string, home = homedir()): Promise<string | undefined> {
  const isRoot = await stat(join(folder, '.git')).then(
    () => true,
    () => false,
  )
  if (isRoot) return isBelowAny(home, [folder]) ? undefined : folder
  return folder === dirname(folder) ? undefined : findRepository(dirname(folder), home)
}
