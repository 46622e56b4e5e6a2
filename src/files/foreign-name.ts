import { realpath } from 'node:fs/promises'
import { relative, resolve, sep } from 'node:path'
import { systemCode, UploadError } from '../errors.ts'
import { type HeldFile, hold } from './held.ts'
import { isBelowAny } from './own-paths.ts'
import { realAncestor } from './way-out.ts'
import { findWindowsFault } from './windows-path.ts'

/** Where a name may lead, and what users do if they want to allow more. */
export interface ForeignNameRules {
  /** Folders, absolute. Relative names begin at the first. */
  readonly folders: readonly [string, ...string[]]
  /** A sentence without its full stop. It ends the message of a refusal. */
  readonly advice: string
}

/**
 * The name of a file that others chose: the author of a list, or an agent. It is not a path. Only `open` leads to the
 * file.
 */
export class ForeignName {
  readonly #name: string
  readonly #rules: ForeignNameRules

  constructor(name: string, rules: ForeignNameRules) {
    this.#name = name
    this.#rules = rules
  }

  /**
   * Opens the file for reading, and checks what was opened: a regular file below one of the folders, without a name on the way
   * there that begins with a dot. The refusal of a file outside of the folders is the same whether it exists or not.
   *
   * @throws UploadError `source_forbidden` or `source_failed`, with the reason as a part of a sentence
   */
  async open(): Promise<HeldFile> {
    const { folders } = this.#rules
    if (/^(?:file:|[a-z][a-z0-9+.-]+:\/\/)/i.test(this.#name))
      throw this.#refusal('it is a URL, and only names of files are allowed here')
    const path = resolve(folders[0], this.#name)
    if (findWindowsFault(path, folders)) throw this.#outside()
    const reals = await Promise.all(folders.map(folder => realpath(folder).catch(() => folder)))
    const trees = [...new Set([...folders, ...reals])]
    this.#check(path, trees, name => `"${name}" begins with a dot`)
    const real = await realpath(path).catch(async (error: unknown) => {
      if (!isBelowAny(await realAncestor(path), reals)) throw this.#outside()
      throw unreadable(error)
    })
    const checkReal = (real: string) =>
      this.#check(real, reals, name => `it is a symlink to ${name}, which begins with a dot`)
    checkReal(real)
    const file = await hold(real).catch((error: unknown) => {
      throw unreadable(error)
    })
    try {
      checkReal(file.real)
      if (file.status.isFile()) return file
      const what = file.status.isDirectory() ? 'a folder' : 'not a regular file'
      throw new UploadError('source_failed', `it is ${what}`)
    } catch (error) {
      await file.close()
      throw error
    }
  }

  #check(path: string, trees: readonly string[], describe: (hidden: string) => string): void {
    const around = trees.filter(tree => isBelowAny(path, [tree]))
    if (around.length === 0) throw this.#outside()
    const hidden = around.map(tree =>
      relative(tree, path)
        .split(sep)
        .find(name => name.startsWith('.')),
    )
    const [first] = hidden
    if (first !== undefined && !hidden.includes(undefined)) throw this.#refusal(describe(first))
  }

  #outside(): UploadError {
    return this.#refusal(`it is outside of the allowed folders (${this.#rules.folders.join(', ')})`)
  }

  #refusal(reason: string): UploadError {
    return new UploadError('source_forbidden', `${reason}. ${this.#rules.advice}`)
  }
}

/** Why the system did not open a file, as a part of a sentence. */
function unreadable(error: unknown): UploadError {
  const code = systemCode(error)
  const isDenied = code === 'EACCES' || code === 'EPERM'
  const reason = isDenied ? 'permission to read it was denied' : 'the file does not exist'
  return new UploadError('source_failed', reason, { cause: error })
}
