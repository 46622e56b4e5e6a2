import { readdir, stat } from 'node:fs/promises'
import { basename, dirname, join, posix, relative, sep } from 'node:path'
import { once } from '../flow/once.ts'

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
export function createVaults(): (note: string, named: string) => Promise<Vault> {
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
    const vault = vaults.get(root) ?? createVault(root, found !== undefined)
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

function createVault(root: string, isObsidian: boolean): Vault {
  const index = once(() => indexByName(root))
  return {
    root,
    isObsidian,
    async find(link, folder) {
      const from = relative(root, folder).split(sep).join('/')
      const path = /^\.\.?\//.test(link) ? posix.join(from, link) : posix.normalize(link.replace(/^\//, ''))
      const named = (await index()).get(fold(posix.basename(path))) ?? []
      const exact = named.find(one => fold(one) === fold(path))
      if (exact !== undefined || /^\.{0,2}\//.test(link)) return exact && join(root, exact)
      const ending = named.filter(one => fold(one).endsWith(`/${fold(path)}`))
      const isNear = (one: string) => from === '' || one.startsWith(`${from}/`)
      const [best] = ending.sort(
        (a, b) => Number(isNear(b)) - Number(isNear(a)) || a.length - b.length || (a < b ? -1 : 1),
      )
      return best && join(root, best)
    },
  }
}

/** macOS writes letters with accents in two characters. */
const fold = (text: string) => text.normalize('NFC').toLowerCase()

/** Paths from the root, with slashes, by the name of the file. */
async function indexByName(root: string): Promise<Map<string, string[]>> {
  const index = new Map<string, string[]>()
  for await (const path of walk(root, () => {})) {
    const name = fold(basename(path))
    const inside = relative(root, path).split(sep).join('/')
    const same = index.get(name)
    if (same) same.push(inside)
    else index.set(name, [inside])
  }
  return index
}

/**
 * Every file below a folder, in order. What begins with a dot and `node_modules` are passed by, links not followed.
 *
 * @param fail hears of folders that can't be read
 */
export async function* walk(
  folder: string,
  fail: (folder: string, error: unknown) => void,
): AsyncGenerator<string> {
  const folders = [folder]
  for (let current = folders.pop(); current !== undefined; current = folders.pop()) {
    const entries = await readdir(current, { withFileTypes: true }).catch((error: unknown) => {
      fail(current as string, error)
      return []
    })
    entries.sort((a, b) => (a.name < b.name ? -1 : 1))
    for (const entry of entries) {
      if (entry.name.startsWith('.') || entry.name === 'node_modules') continue
      if (entry.isFile()) yield join(current, entry.name)
    }
    for (const entry of entries.reverse()) {
      if (entry.isDirectory() && !entry.name.startsWith('.') && entry.name !== 'node_modules')
        folders.push(join(current, entry.name))
    }
  }
}
