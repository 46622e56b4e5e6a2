import { dirname, extname, isAbsolute, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isImageExtension } from '../../payload/extensions.ts'
import { percentDecoded } from '../../payload/file-name.ts'
import type { Entry } from '../entries.ts'
import { ABSENT, type ImageFinder } from './image-files.ts'
import type { Reference } from './references.ts'
import type { Vault } from './vault.ts'

/** The target of a reference. */
export type ReferenceTarget =
  | { readonly is: 'file'; readonly entry: Entry; readonly fragment?: string }
  | { readonly is: 'address'; readonly url: URL; readonly fragment: string }
  | { readonly is: 'missing'; readonly reason: string }

/**
 * Finds the image that a reference of a note names.
 *
 * @param note its absolute path
 * @param find finds the images that this note may name
 * @param imageRoot folder for paths that start with a slash, relative to the note; undefined if the note sets none
 * @returns undefined if the target is not an image, such as an embedded note or video, or is a `data:` URL
 */
export async function findImage(
  reference: Reference,
  note: string,
  vault: Vault,
  find: ImageFinder,
  imageRoot?: string,
): Promise<ReferenceTarget | undefined> {
  const { kind, target } = reference
  const folder = dirname(note)
  if (kind === 'embed') {
    if (!isImageExtension(extname(target))) return undefined
    const path = await vault.find(target, folder)
    return path === undefined ? missing('no file of this name in the vault') : find([path])
  }
  if (/^https?:\/\//i.test(target)) return URL.canParse(target) ? atAddress(new URL(target)) : undefined
  if (/^file:/i.test(target)) return findByUrl(target, find)
  if (target === '' || /^(?:[a-z][a-z0-9+.-]+:|\/\/|#)/i.test(target)) return undefined

  const names = namesIn(reference)
  if (!names.some(({ name }) => mayBeImage(name))) return undefined
  let refused: ReferenceTarget | undefined
  for (const { name, fragment } of names) {
    const paths = [resolve(folder, name)]
    if (/^[\\/]/.test(name)) {
      if (imageRoot !== undefined) paths.unshift(join(resolve(folder, imageRoot), name))
      paths.push(join(vault.root, name))
    }
    const inVault = vault.isObsidian ? await vault.find(name, folder) : undefined
    const found = await find(inVault === undefined ? paths : [...paths, inVault])
    if (found.is === 'file') return { ...found, fragment }
    if (found.reason !== ABSENT) refused ??= found
  }
  const isOfWindows = /^[a-z]:[\\/]/i.test(target) && !isAbsolute(target)
  return refused ?? missing(isOfWindows ? 'it is a Windows path' : ABSENT)
}

/** Whether a name may be that of an image. Without an extension, the bytes are checked later. */
const mayBeImage = (name: string) => extname(name) === '' || isImageExtension(extname(name))

async function findByUrl(target: string, find: ImageFinder): Promise<ReferenceTarget | undefined> {
  let path: string
  try {
    path = fileURLToPath(target)
  } catch {
    return missing('it is on another computer')
  }
  if (!mayBeImage(path)) return undefined
  return find([path])
}

/** The file names that a reference may mean, the most likely first, and the fragment that is then not part of the name. */
function namesIn({ target, written = target }: Reference): { name: string; fragment: string }[] {
  const [behind = ''] = /#.*/s.exec(target) ?? []
  const asWritten = [target, written].flatMap(name => [percentDecoded(name), name])
  const fragments = new Map(
    asWritten.flatMap(
      name =>
        [
          [name, ''],
          [name.replace(/[?#].*/s, ''), behind],
        ] as const,
    ),
  )
  for (const [name, fragment] of [...fragments]) fragments.set(name.replaceAll('\\', '/'), fragment)
  fragments.delete('')
  return [...fragments].map(([name, fragment]) => ({ name, fragment }))
}

function atAddress(url: URL): ReferenceTarget {
  const fragment = url.hash
  url.hash = ''
  return { is: 'address', url, fragment }
}

const missing = (reason: string): ReferenceTarget => ({ is: 'missing', reason })
