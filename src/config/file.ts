import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { ParseError } from 'jsonc-parser'
import { decodeText } from '../decode-text.ts'
import { messageOf, systemCode } from '../errors.ts'
import type { OnProblem } from './interpolate.ts'
import { type PathContext, resolveLocalPath, userConfigFile } from './paths.ts'
import { isPlainFile, LOCAL_CONFIG_FILE, type Origin, TRUST_OPTION } from './trust.ts'

/** A configuration file that was found but not parsed yet. */
export interface ConfigFile {
  readonly path: string
  readonly text: string
  readonly origin: Origin
}

/** What decides where the file is looked for. */
export interface WhereToLook extends PathContext {
  /** The file of `--config`, or of a configuration that is reloaded. */
  file?: string | undefined
  /** How that file was found. Default: `named`. */
  origin?: Origin | undefined
  /** Whether to look in the working directory, which is not trusted. Default: false. */
  looksHere?: boolean
}

/**
 * Finds the configuration file: that of `--config`, of `UPLOAD_SERVER_CONFIG`, `./upload-server.json` (if `looksHere`), or
 * the one in the user's configuration directory.
 *
 * @returns undefined if there is none
 * @throws Error if a named file does not exist, or if a file exists but can't be read
 */
export function findConfigFile(where: WhereToLook): ConfigFile | undefined {
  const { cwd, env, file, origin = 'named' } = where
  const wanted = file ?? (env['UPLOAD_SERVER_CONFIG'] || undefined)
  if (wanted !== undefined) return readConfig(resolveLocalPath(wanted, cwd), origin)
  const here = { path: join(cwd, LOCAL_CONFIG_FILE), origin: 'here' } as const
  const user = { path: userConfigFile(where), origin: 'user' } as const
  for (const { path, origin } of where.looksHere ? [here, user] : [user]) {
    try {
      return readConfig(path, origin)
    } catch (error) {
      if (!(error instanceof UnreadableError && error.missing)) throw error
    }
  }
  return undefined
}

function readConfig(path: string, origin: Origin): ConfigFile {
  const isOdd = origin === 'here' && existsSync(path) && !statSync(path).isDirectory()
  if (isOdd && !isPlainFile(path, join(path, '..')))
    throw new Error(
      `${path} was ignored, because it is a link to a file outside the working directory, or not a regular file. If you trust it, start with ${TRUST_OPTION}.`,
    )
  return { path, text: readText(path), origin }
}

const REASONS: Record<string, string> = {
  ENOENT: 'no such file',
  EISDIR: 'it is a directory',
  EACCES: 'permission denied',
}

class UnreadableError extends Error {
  readonly missing: boolean

  constructor(path: string, cause: unknown) {
    const code = systemCode(cause) ?? ''
    super(`Could not read ${path}: ${REASONS[code] ?? (code || messageOf(cause))}`, { cause })
    this.missing = code === 'ENOENT' || code === 'ENOTDIR'
  }
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
    throw new UnreadableError(path, error)
  }
}

/**
 * Parses JSON. Comments and trailing commas are allowed.
 *
 * @param report is called for each name that an object has more than once, since only the last value would count
 * @throws Error with line and column
 */
export async function parseJson(text: string, report: OnProblem): Promise<unknown> {
  const value = await parseTolerant(text)
  for (const { path, offset } of findRepeated(text)) {
    report(path, `is set twice, the second time in ${placeOf(text, offset)}. Remove one of them`)
  }
  return value
}

async function parseTolerant(text: string): Promise<unknown> {
  try {
    return JSON.parse(text)
  } catch {
    const { parse, printParseErrorCode } = await import('jsonc-parser')
    const errors: ParseError[] = []
    const value: unknown = parse(text, errors, { allowTrailingComma: true })
    const [first] = errors
    if (!first) return value
    const what = printParseErrorCode(first.error).replace(/(?<=[a-z])(?=[A-Z])/g, ' ')
    throw new Error(`is not valid JSON: ${what.toLowerCase()} in ${placeOf(text, first.offset)}`)
  }
}

function placeOf(text: string, offset: number): string {
  const lines = text.slice(0, offset).split('\n')
  return `line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1}`
}

const COMMENT_STRING_OR_BRACKET =
  /\/\/.*|\/\*[\s\S]*?(?:\*\/|$)|("(?:[^"\\]|\\[\s\S])*(?:"|\\?$))(\s*:)?|[{}[\]]/g

/** Finds the members of valid JSON whose object has an earlier member of the same name. */
function findRepeated(text: string): { path: string; offset: number }[] {
  const repeated: { path: string; offset: number }[] = []
  const around: { names: Set<string>; name: string }[] = []
  for (const match of text.matchAll(COMMENT_STRING_OR_BRACKET)) {
    const [token, string, colon] = match
    if (token === '{' || token === '[') around.push({ names: new Set(), name: '' })
    if (token === '}' || token === ']') around.pop()
    const object = around.at(-1)
    if (!object || !string || !colon) continue
    object.name = JSON.parse(string)
    if (object.names.has(object.name)) {
      const path = around.flatMap(({ name }) => name || []).join('.')
      repeated.push({ path, offset: match.index })
    }
    object.names.add(object.name)
  }
  return repeated
}
