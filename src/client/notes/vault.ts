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

/** What holds the settings of an Obsidian vault, in its root. */
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
  const index = once(() => indexByName(root, signal))
  /** What links lead to, by the folder of the note and the link: notes name an image more than once. */
  const found = new Map<string, string | undefined>()
  return {
    root,
    isObsidian,
    async find(link, folder) {
      const from = relative(root, folder).split(sep).join('/')
      const asked = `${from}\0${link}`
      if (!found.has(asked)) found.set(asked, findIn(await index(), link, from))
      const best = found.get(asked)
      return best && join(root, best)
    },
  }
}

interface Indexed {
  /** From the root. */
  readonly path: string
  /** The folded path from its end on, with a slash behind it. */
  readonly reversed: string
}

/** Files of one name. */
interface Namesakes {
  readonly files: Indexed[]
  isSorted: boolean
}

function findIn(index: ReadonlyMap<string, Namesakes>, link: string, from: string): string | undefined {
  const path = fold(/^\.\.?\//.test(link) ? posix.join(from, link) : posix.normalize(link.replace(/^\//, '')))
  const named = index.get(posix.basename(path))
  if (named === undefined) return undefined
  const end = reverse(path)
  const ending = endingSo(named, end)
  const exact = ending[0]?.reversed === end ? ending[0] : undefined
  if (exact !== undefined || /^\.{0,2}\//.test(link)) return exact?.path
  const near = from === '' ? ending : ending.filter(one => one.path.startsWith(`${from}/`))
  return shortest(near.length > 0 ? near : ending)?.path
}

const reverse = (path: string) => `${path.split('').reverse().join('')}/`

/** Those whose paths end so, the whole path first. A vault may have thousands of one name, and a note as many links. */
function endingSo(named: Namesakes, end: string): Indexed[] {
  const { files } = named
  if (!named.isSorted) files.sort((a, b) => (a.reversed < b.reversed ? -1 : Number(a.reversed > b.reversed)))
  named.isSorted = true
  let [first, behind] = [0, files.length]
  while (first < behind) {
    const middle = (first + behind) >> 1
    if ((files[middle]?.reversed ?? '') < end) first = middle + 1
    else behind = middle
  }
  let last = first
  while (files[last]?.reversed.startsWith(end)) last++
  return files.slice(first, last)
}

/** Of several, the first by the alphabet. */
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

/** Files by their folded names, with paths from the root and slashes. */
async function indexByName(root: string, signal: AbortSignal): Promise<Map<string, Namesakes>> {
  const index = new Map<string, Namesakes>()
  for await (const path of walk(root, () => {}, signal)) {
    const inside = relative(root, path).split(sep).join('/')
    const folded = fold(inside)
    const name = posix.basename(folded)
    const same = index.get(name) ?? { files: [], isSorted: false }
    same.files.push({ path: inside, reversed: reverse(folded) })
    index.set(name, same)
  }
  return index
}
