import { stat } from 'node:fs/promises'
import { dirname, join, posix, relative, sep } from 'node:path'
import { once } from '../../flow/once.ts'
import { walk } from '../walk.ts'

/** A folder of notes, in which wiki links are looked up by name. */
export interface Vault {
  /** Absolute path. */
  readonly root: string
  /** Whether it is one of Obsidian, which looks up the addresses of Markdown images by name, too. */
  readonly isObsidian: boolean
  /**
   * What a link leads to as Obsidian has it: the path from the root or, with `./` and `../`, from the note; else the file
   * whose path ends so. Of several the one below the note's folder, then the one with the shortest path. Upper and lower
   * case are the same.
   *
   * @param folder of the note, absolute
   * @returns absolute path
   */
  find(link: string, folder: string): Promise<string | undefined>
}

/** Folder with the settings of an Obsidian vault, in its root. */
const OBSIDIAN = '.obsidian'

/**
 * Knows the vaults of notes: the nearest folder around a note that holds the settings of Obsidian, else the one that was
 * named on the command line.
 */
export function createVaults(signal: AbortSignal): (note: string, named: string) => Promise<Vault> {
  const roots = new Map<string, Promise<string | undefined>>()
  const vaults = new Map<string, Vault>()
  const rootOf = (folder: string): Promise<string | undefined> => {
    const known = roots.get(folder) ?? findRoot(folder, rootOf)
    roots.set(folder, known)
    return known
  }
  return async (note, named) => {
    const found = await rootOf(dirname(note))
    const root = found ?? named
    const vault = vaults.get(root) ?? createVault(root, found !== undefined, signal)
    vaults.set(root, vault)
    return vault
  }
}

async function findRoot(
  folder: string,
  rootOf: (folder: string) => Promise<string | undefined>,
): Promise<string | undefined> {
  const settings = await stat(join(folder, OBSIDIAN)).catch(() => undefined)
  if (settings?.isDirectory()) return folder
  return folder === dirname(folder) ? undefined : rootOf(dirname(folder))
}

function createVault(root: string, isObsidian: boolean, signal: AbortSignal): Vault {
  const index = once(() => indexByEnd(root, signal))
  /** What links lead to, by the folder of the note and the path: notes name an image more than once. */
  const found = new Map<string, string | undefined>()
  return {
    root,
    isObsidian,
    async find(link, folder) {
      const from = relative(root, folder).split(sep).join('/')
      const path = /^\.\.?\//.test(link) ? posix.join(from, link) : posix.normalize(link.replace(/^\//, ''))
      const asked = { path: fold(path), from, isExact: /^\.{0,2}\//.test(link) }
      const key = JSON.stringify(asked)
      if (!found.has(key)) found.set(key, findIn(await index(), asked))
      const best = found.get(key)
      return best && join(root, best)
    },
  }
}

/** A file of a vault: its path from the root, with slashes, as it is and folded. */
interface Indexed {
  readonly path: string
  readonly folded: string
}

function findIn(
  index: ReadonlyMap<string, readonly Indexed[]>,
  { path, from, isExact }: { path: string; from: string; isExact: boolean },
): string | undefined {
  const ending = index.get(path) ?? []
  const exact = ending.find(({ folded }) => folded === path)
  if (exact !== undefined || isExact) return exact?.path
  const near = from === '' ? [] : ending.filter(one => one.path.startsWith(`${from}/`))
  return shortest(near.length > 0 ? near : ending)?.path
}

/** If there are several, the first by the alphabet. */
function shortest(files: readonly Indexed[]): Indexed | undefined {
  let best = files[0]
  for (const one of files) {
    if (best === undefined) return undefined
    const less = one.path.length - best.path.length
    if (less < 0 || (less === 0 && one.path < best.path)) best = one
  }
  return best
}

/** macOS writes letters with accents in two characters. */
const fold = (text: string) => text.normalize('NFC').toLowerCase()

/** Files by each end of their folded paths: `x/y/a.png`, `y/a.png` and `a.png`. */
async function indexByEnd(root: string, signal: AbortSignal): Promise<Map<string, Indexed[]>> {
  const index = new Map<string, Indexed[]>()
  for await (const file of walk(root, () => {}, signal)) {
    const path = relative(root, file).split(sep).join('/')
    const folded = fold(path)
    for (let at = 0; ; ) {
      const end = folded.slice(at)
      const same = index.get(end)
      if (same) same.push({ path, folded })
      else index.set(end, [{ path, folded }])
      at = folded.indexOf('/', at) + 1
      if (at === 0) break
    }
  }
  return index
}
