import { access, chmod, chown, constants, realpath, rename, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { readText } from '../../config/file.ts'
import { parseJson } from '../../config/parse.ts'
import { isPicGoConfig } from '../../config/picgo/recognise.ts'
import { listNamed } from '../../config/providers.ts'
import { systemCode } from '../../errors.ts'
import { isRecord } from '../../members.ts'
import { applyEdits, modify } from '../../packages/jsonc-parser.ts'
import { idOf } from '../../uploader/destinations.ts'

/** A configuration file to which a destination is added. */
export interface Existing {
  /** Its real path, so that a symlink to it stays. */
  readonly file: string
  readonly text: string
  readonly plugins: readonly string[]
  /** Ids of its destinations. */
  readonly ids: readonly string[]
  readonly hasDefault: boolean
  /**
   * Replaces the file by a draft in the same folder. Owner and permissions stay.
   *
   * @throws Error if the file was changed since it was read
   */
  replace(draft: string): Promise<void>
}

/** @throws Error if the file can't be read, is not valid JSON, or is not a configuration of this program */
export async function readExisting(named: string): Promise<Existing> {
  const text = readText(named)
  const file = await realpath(named)
  const ambiguous = (path: string, problem: string) => {
    throw new Error(`${named} is ambiguous: "${path}" ${problem}.`)
  }
  const { value: parsed } = parseJson(text, ambiguous, named)
  if (isPicGoConfig(parsed))
    throw new Error(
      `${named} is a configuration of PicGo or PicList. Convert it first: upload-server config import`,
    )
  if (!isRecord(parsed)) throw new Error(`${named} must contain an object.`)
  await access(dirname(file), constants.W_OK | constants.X_OK).catch(error => {
    throw new Error(`Could not change ${named}: ${systemCode(error)} at ${dirname(file)}.`)
  })
  const { plugins } = parsed
  return {
    ...{ file, text },
    plugins: Array.isArray(plugins) ? plugins.filter(one => typeof one === 'string') : [],
    ids: listNamed(parsed['providers']).map(idOf),
    hasDefault: parsed['default'] !== undefined,
    async replace(draft) {
      const { mode, uid, gid } = await stat(file)
      await chown(draft, uid, gid)
      await chmod(draft, mode & 0o777)
      if (readText(file) !== text)
        throw new Error(
          `${named} was changed in the meantime, so the destination was not added. Run the command again.`,
        )
      await rename(draft, file)
    },
  }
}

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
