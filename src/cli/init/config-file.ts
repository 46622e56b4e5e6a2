import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { link, readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { readText } from '../../config/file.ts'
import { isPicGoConfig, parseJson } from '../../config/parse.ts'
import { listNamed } from '../../config/providers.ts'
import { describeFileError, systemCode } from '../../errors.ts'
import { makePath } from '../../files/make-path.ts'
import { isRecord } from '../../members.ts'
import { applyEdits, modify } from '../../packages/jsonc-parser.ts'
import { idOf } from '../../uploader/destinations.ts'

/** A configuration to which a destination is added. */
export interface Existing {
  readonly text: string
  readonly plugins: unknown
  /** Ids of its destinations. */
  readonly ids: readonly string[]
  readonly hasDefault: boolean
}

/** @throws Error if the file is not a configuration of this program */
export function readExisting(file: string): Existing {
  const text = readText(file)
  const report = (path: string, problem: string) => {
    throw new Error(`${file} is ambiguous: "${path}" ${problem}.`)
  }
  const { value: parsed } = parseJson(text, report, file)
  if (isPicGoConfig(parsed))
    throw new Error(
      `${file} is a configuration of PicGo or PicList. Convert it first: upload-server config import`,
    )
  if (!isRecord(parsed)) throw new Error(`${file} must contain an object.`)
  return {
    text,
    plugins: parsed['plugins'],
    ids: listNamed(parsed['providers']).map(idOf),
    hasDefault: parsed['default'] !== undefined,
  }
}

/** The name of a draft next to a file. @throws Error for a new file that exists */
export function nameDraft(file: string, isNew: boolean): string {
  if (isNew && existsSync(file)) throw alreadyExists(file)
  return `${file}.${randomBytes(4).toString('hex')}.new`
}

/** Writes the draft of a file. Without a text, this shows before any question that the file can be written. */
export async function writeDraft(draft: string, file: string, text = ''): Promise<void> {
  try {
    await makePath(dirname(file), 0o700)
    await writeFile(draft, text, { mode: 0o600 })
  } catch (error) {
    throw new Error(
      `Could not write ${file}: ${describeFileError(error)}. Choose another file with --config.`,
    )
  }
}

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
  // The only destination needs no "default", but one of two does.
  return hasDefault ? added : set(added, ['default'], ids[0] ?? idOf({ type, name }))
}

/**
 * Saves a draft. A new file has the draft's mode 0600 and replaces none. An existing one is written in place, so its owner, its
 * permissions and a symlink to it stay.
 */
export async function saveDraft(draft: string, file: string, isNew: boolean): Promise<void> {
  if (!isNew) return writeFile(file, await readFile(draft))
  await link(draft, file).catch(error => {
    throw systemCode(error) === 'EEXIST' ? alreadyExists(file) : error
  })
}
