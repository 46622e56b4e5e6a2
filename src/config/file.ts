import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { decodeText } from '../decode-text.ts'
import { describeFileError, systemCode } from '../errors.ts'
import { type PathContext, resolveLocalPath, userConfigFile } from './paths.ts'

/** A configuration file that was found but not parsed yet. */
export interface ConfigFile {
  readonly path: string
  readonly text: string
}

/** Inputs that decide where the file is searched. */
export interface WhereToLook extends PathContext {
  /** The file of `--config`, or of a configuration that is reloaded. */
  file?: string | undefined
}

/**
 * Finds the configuration file: that of `--config`, of `UPLOAD_SERVER_CONFIG`, or the one in the user's configuration
 * directory. The working directory is not searched, because others may have made this repository or vault.
 *
 * @returns undefined if there is none
 * @throws Error if a named file does not exist, or if a file exists but can't be read
 */
export function findConfigFile(where: WhereToLook): ConfigFile | undefined {
  const named = nameOf(where)
  const path = named === undefined ? userConfigFile(where) : resolveLocalPath(named, where.cwd)
  try {
    return { path, text: readText(path) }
  } catch (error) {
    const isMissing = error instanceof Error && ['ENOENT', 'ENOTDIR'].includes(systemCode(error.cause) ?? '')
    if (named === undefined && isMissing) return undefined
    throw error
  }
}

/** The file that the user named. */
const nameOf = ({ file, env }: WhereToLook) => file ?? (env['UPLOAD_SERVER_CONFIG'] || undefined)

/** Tells a user who named no file that the one in the working directory is not used. */
export function noteUnused(where: WhereToLook, note: (line: string) => void): void {
  if (nameOf(where) === undefined && existsSync(join(where.cwd, 'upload-server.json')))
    note('./upload-server.json is not used. Start with --config upload-server.json to use it.')
}

/**
 * Reads UTF-8, or the UTF-16 that Windows PowerShell writes for `upload-server config import … > file`: see `decodeText`.
 *
 * @throws Error with the file and the reason why it can't be read
 */
export function readText(path: string): string {
  try {
    return decodeText(readFileSync(path))
  } catch (error) {
    throw new Error(`Could not read ${path}: ${describeFileError(error)}`, { cause: error })
  }
}
