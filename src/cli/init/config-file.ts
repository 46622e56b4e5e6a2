import { randomBytes } from 'node:crypto'
import {
  access,
  chmod,
  chown,
  constants,
  link,
  realpath,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises'
import { dirname } from 'node:path'
import { readText } from '../../config/file.ts'
import { isPicGoConfig, parseJson } from '../../config/parse.ts'
import { listNamed } from '../../config/providers.ts'
import { describeFileError, systemCode } from '../../errors.ts'
import { makePath } from '../../files/make-path.ts'
import { isRecord } from '../../members.ts'
import { applyEdits, modify } from '../../packages/jsonc-parser.ts'
import { idOf } from '../../uploader/destinations.ts'

/** A configuration file to create, or to which a destination is added. */
export interface ConfigFile {
  /** Absolute, as the user named it. */
  readonly named: string
  /** Its real path, so that a symlink to it stays. */
  readonly path: string
  /** What it contains. Undefined if it does not exist. */
  readonly existing: Existing | undefined
}

interface Existing {
  readonly text: string
  readonly plugins: readonly string[]
  /** Ids of its destinations. */
  readonly ids: readonly string[]
  readonly hasDefault: boolean
}

/**
 * Checks before any question that the file can be written.
 *
 * @param isAdded whether the file must exist; otherwise it must not
 * @throws Error if that is not so, or if it is not a configuration of this program
 */
export async function openConfigFile(named: string, isAdded: boolean): Promise<ConfigFile> {
  if (!isAdded && (await isThere(named))) throw alreadyExists(named)
  const existing = isAdded ? readExisting(named) : undefined
  const path = isAdded ? await realpath(named) : named
  let folder = dirname(path)
  while (!(await isThere(folder)) && dirname(folder) !== folder) folder = dirname(folder)
  await access(folder, constants.W_OK | constants.X_OK).catch(error => {
    throw new Error(
      `Could not write ${named} below ${folder}: ${describeFileError(error)}. Choose another file with --config.`,
    )
  })
  return { named, path, existing }
}

function readExisting(named: string): Existing {
  const text = readText(named)
  const ambiguous = (path: string, problem: string) => {
    throw new Error(`${named} is ambiguous: "${path}" ${problem}.`)
  }
  const { value: parsed } = parseJson(text, ambiguous, named)
  if (isPicGoConfig(parsed))
    throw new Error(
      `${named} is a configuration of PicGo or PicList. Convert it first: upload-server config import`,
    )
  if (!isRecord(parsed)) throw new Error(`${named} must contain an object.`)
  const { plugins } = parsed
  return {
    text,
    plugins: Array.isArray(plugins) ? plugins.filter(one => typeof one === 'string') : [],
    ids: listNamed(parsed['providers']).map(idOf),
    hasDefault: parsed['default'] !== undefined,
  }
}

const isThere = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )

const alreadyExists = (file: string) =>
  new Error(
    `${file} already exists and was not changed. To add a destination to it, use --add. To create another file, use --config.`,
  )

/** @returns the text of the configuration with the destination. Comments and order stay */
export function addDestination(
  { text, ids, hasDefault }: Existing,
  type: string,
  name: string,
  options: unknown,
): string {
  const [, indent = '  '] = /\n([ \t]+)"/.exec(text) ?? []
  const formattingOptions = {
    insertSpaces: !indent.startsWith('\t'),
    tabSize: indent.length,
    eol: text.includes('\r\n') ? '\r\n' : '\n',
  }
  const set = (before: string, path: string[], value: unknown) =>
    applyEdits(before, modify(before, path, value, { formattingOptions }))
  const added = set(text, ['providers', type, name], options)
  if (hasDefault) return added
  // The only destination needs no "default", but one of two does.
  return set(added, ['default'], ids[0] ?? idOf({ type, name }))
}

/**
 * Writes a text to a draft in the same folder, which becomes the file if nothing is wrong with it. A new file has mode 0600;
 * the owner and the permissions of another one stay. A file that was not read is never overwritten.
 *
 * @param findProblem returns why the draft must not be saved
 * @returns that reason; undefined if it was saved
 */
export async function saveConfig(
  { named, path, existing }: ConfigFile,
  text: string,
  findProblem: (draft: string) => Promise<string | undefined>,
): Promise<string | undefined> {
  await makePath(dirname(path), 0o700)
  const draft = `${path}.${randomBytes(4).toString('hex')}.new`
  try {
    await writeFile(draft, text, { mode: 0o600, flag: 'wx' }).catch(error => {
      throw new Error(`Could not write ${named}: ${describeFileError(error)}.`)
    })
    const problem = await findProblem(draft)
    if (problem !== undefined) return problem
    if (existing) {
      const { mode, uid, gid } = await stat(path)
      await chown(draft, uid, gid)
      await chmod(draft, mode & 0o777)
      if (readText(path) !== existing.text)
        throw new Error(
          `${named} was changed in the meantime, so the destination was not added. Run the command again.`,
        )
      await rename(draft, path)
    } else
      await link(draft, path).catch(error => {
        throw systemCode(error) === 'EEXIST' ? alreadyExists(named) : error
      })
    return undefined
  } finally {
    await rm(draft, { force: true })
  }
}
