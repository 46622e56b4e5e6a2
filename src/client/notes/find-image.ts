import { realpath } from 'node:fs/promises'
import { dirname, extname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { UploadError } from '../../errors.ts'
import type { HeldFile } from '../../files/held.ts'
import { findWindowsFault } from '../../files/windows-path.ts'
import { isAt } from '../../http/addresses.ts'
import { isImageExtension } from '../../payload/extensions.ts'
import { percentDecoded } from '../../payload/file-name.ts'
import { sniffFile } from '../../payload/sniff.ts'
import { type Entry, entryOfForeign } from '../entries.ts'
import type { Reference } from './references.ts'
import type { Vault } from './vault.ts'

/** The image that a reference names, and the fragment that stays in its link, such as `#right`; or why there is none. */
export type FoundImage =
  | { readonly image: Entry; readonly fragment?: string }
  | { readonly reason: string; readonly image?: undefined }

/** Where a note may name images. */
export interface Surroundings {
  /** Absolute. Relative paths begin at the first, which is the folder of the note. */
  readonly folders: readonly [string, ...string[]]
  readonly vault: Vault
  /** Folder for paths that start with a slash, relative to the note. */
  readonly imageRoot: string | undefined
}

const ABSENT = 'the file does not exist'

/** The image at a URL, if it is at one of some hosts. */
export function findAddress({ kind, target }: Reference, hosts: readonly string[]): FoundImage | undefined {
  if (kind === 'embed' || !/^https?:\/\//i.test(target) || !URL.canParse(target)) return undefined
  const url = new URL(target)
  const fragment = url.hash
  url.hash = ''
  return isAt(hosts, url)
    ? { image: { kind: 'url', name: url.href, path: '', size: 0 }, fragment }
    : undefined
}

/** Finds the local image that a reference names. @returns undefined if it names none, but a note, a video or a URL */
export async function findFile(
  reference: Reference,
  { folders, vault, imageRoot }: Surroundings,
): Promise<FoundImage | undefined> {
  const { kind, target } = reference
  const [folder] = folders
  if (kind === 'embed') {
    if (!isImageExtension(extname(target))) return undefined
    const path = await vault.find(target, folder)
    return path === undefined ? { reason: 'no file of this name in the vault' } : lookAt(path, folders)
  }
  if (/^file:/i.test(target)) {
    const path = pathOf(target)
    if (path === undefined) return { reason: 'it is on another computer' }
    return mayBeImage(path) ? lookAt(path, folders) : undefined
  }
  if (target === '' || /^(?:[a-z][a-z0-9+.-]+:|\/\/|#)/i.test(target)) return undefined

  const names = namesIn(reference)
  if (![...names.keys()].some(mayBeImage)) return undefined
  let reason = ABSENT
  for (const [name, fragment] of names) {
    const isRooted = /^[\\/]/.test(name)
    const paths = [
      isRooted && imageRoot !== undefined ? join(resolve(folder, imageRoot), name) : undefined,
      resolve(folder, name),
      isRooted ? join(vault.root, name) : undefined,
      vault.isObsidian ? await vault.find(name, folder) : undefined,
    ]
    for (const path of paths.filter(one => one !== undefined)) {
      const found = await lookAt(path, folders)
      if (found.image) return { ...found, fragment }
      if (reason === ABSENT) reason = found.reason
    }
  }
  return { reason }
}

/** Whether a name may be that of an image. Without an extension, the bytes are checked later. */
const mayBeImage = (name: string) => extname(name) === '' || isImageExtension(extname(name))

/** The path of a `file:` URL. Undefined if it is one of another computer. */
function pathOf(url: string): string | undefined {
  try {
    return fileURLToPath(url)
  } catch {
    return undefined
  }
}

/** The file names that a reference may mean, the most likely first, and the fragment that is then not part of the name. */
function namesIn({ target, written = target }: Reference): ReadonlyMap<string, string> {
  const [behind = ''] = /#.*/s.exec(target) ?? []
  const asWritten = [target, written].flatMap(name => [percentDecoded(name), name])
  const fragments = new Map<string, string>()
  for (const name of asWritten) fragments.set(name, '').set(name.replace(/[?#].*/s, ''), behind)
  for (const [name, fragment] of [...fragments]) fragments.set(name.replaceAll('\\', '/'), fragment)
  fragments.delete('')
  return fragments
}

/**
 * Looks at an absolute path. A note may come from others, and what is uploaded may be public: an image must be below one of the
 * folders, without a name on the way there that begins with a dot, and be an image by its bytes.
 */
export async function lookAt(path: string, folders: Surroundings['folders']): Promise<FoundImage> {
  // Only the user sees the result. On Windows, even a lookup may connect to another machine, so such paths are rejected first.
  const real = findWindowsFault(path, folders) ? undefined : await realpath(path).catch(() => undefined)
  if (real === undefined) return { reason: ABSENT }
  const advice = `If you trust the note, add --root ${dirname(real)}`
  const { fault, ...image } = await entryOfForeign(path, { folders, advice }, assertImage)
  return fault === undefined ? { image } : { reason: fault }
}

async function assertImage({ handle }: HeldFile): Promise<void> {
  const { contentType } = await sniffFile(handle)
  if (!contentType.startsWith('image/')) throw new UploadError('source_failed', 'it is not an image')
}
