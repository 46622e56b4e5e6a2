import { stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join, posix, relative, sep } from 'node:path'
import { isBelowAny } from '../../files/own-paths.ts'
import { once } from '../../flow/once.ts'
import { walk } from '../walk.ts'

/** A folder of notes, in which wiki links are looked up by name. */
export interface Vault {
  /** Absolute path. */
  readonly root: string
  /** Whether it is one of Obsidian, which looks up the URLs of Markdown images by name, too. */
  readonly isObsidian: boolean
  /**
   * Finds what Obsidian would: the path from the root or, with `./` and `../`, from the note; otherwise a file whose path ends
   * so. Of several, it is one below the folder of the note, and then the one with the shortest path. Upper and lower case are
   * the same.
   *
   * @param folder of the note, absolute
   * @returns absolute path
   */
  find(link: string, folder: string): Promise<string | undefined>
}

/**
 * Knows the vaults of notes: the nearest folder above a note that has the settings of Obsidian, or else the folder that was
 * named on the command line.
 */
export function createVaults(signal: AbortSignal): (note: string, named: string) => Promise<Vault> {
  const vaults = new Map<string, Vault>()
  return async (note, named) => {
    const found = await findUp(dirname(note), '.obsidian')
    const root = found ?? named
    const vault = vaults.get(root) ?? createVault(root, found !== undefined, signal)
    vaults.set(root, vault)
    return vault
  }
}

/**
 * The repository that a note is in. Undefined if there is none, or if it contains the home folder of the user: people keep
 * their settings in such repositories.
 */
export async function findRepository(folder: string, home = homedir()): Promise<string | undefined> {
  const root = await findUp(folder, '.git')
  return root !== undefined && isBelowAny(home, [root]) ? undefined : root
}

/** The nearest folder, from this one upwards, that has something of this name. */
async function findUp(folder: string, name: string): Promise<string | undefined> {
  if (await stat(join(folder, name)).catch(() => undefined)) return folder
  return folder === dirname(folder) ? undefined : findUp(dirname(folder), name)
}

function createVault(root: string, isObsidian: boolean, signal: AbortSignal): Vault {
  const list = once(() => listFiles(root, signal))
  return {
    root,
    isObsidian,
    async find(link, folder) {
      const from = relative(root, folder).split(sep).join('/')
      const path = fold(
        /^\.\.?\//.test(link) ? posix.join(from, link) : posix.normalize(link.replace(/^\//, '')),
      )
      const ending = (await list()).filter(one => one.end.endsWith(`/${path}`))
      const exact = ending.find(one => one.end === `/${path}`)
      const isExact = exact !== undefined || /^\.{0,2}\//.test(link)
      const best = isExact ? exact : (ending.find(one => one.path.startsWith(`${from}/`)) ?? ending[0])
      return best && join(root, best.path)
    },
  }
}

/** macOS writes letters with accents in two characters. */
const fold = (text: string) => text.normalize('NFC').toLowerCase()

/** The paths of files from the root, with slashes, and what links end with. The shortest path is the first. */
async function listFiles(root: string, signal: AbortSignal) {
  const paths: string[] = []
  for await (const file of walk(root, () => {}, signal)) paths.push(relative(root, file).split(sep).join('/'))
  paths.sort((a, b) => a.length - b.length || (a < b ? -1 : 1))
  return paths.map(path => ({ path, end: `/${fold(path)}` }))
}
