import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ParseError } from 'jsonc-parser'
import type { Environment } from './environment.ts'
import type { Report } from './interpolate.ts'
import { type PathContext, resolveLocalPath, userConfigFile } from './paths.ts'

/** A configuration file that was found, not yet understood. */
export interface ConfigFile {
  readonly path: string
  readonly text: string
}

/**
 * Looks for the file: `--config`, `UPLOAD_SERVER_CONFIG`, `./upload-server.json`, the user's configuration directory.
 *
 * @returns undefined when there is none
 * @throws Error when one that was named can't be read, or one that is there
 */
export function findConfigFile(
  named: string | undefined,
  env: Environment,
  context: PathContext,
): ConfigFile | undefined {
  const wanted = named ?? (env['UPLOAD_SERVER_CONFIG'] || undefined)
  if (wanted !== undefined) {
    const path = resolveLocalPath(wanted, context.cwd)
    return { path, text: readText(path) }
  }
  for (const path of [join(context.cwd, 'upload-server.json'), userConfigFile({ ...context, env })]) {
    try {
      return { path, text: readText(path) }
    } catch (error) {
      if (!(error instanceof UnreadableError && error.missing)) throw error
    }
  }
  return undefined
}

const REASONS: Record<string, string> = {
  ENOENT: 'it is not there',
  EISDIR: 'it is a directory',
  EACCES: 'permission denied',
}

class UnreadableError extends Error {
  readonly missing: boolean

  constructor(path: string, cause: NodeJS.ErrnoException) {
    super(`${path} can't be read: ${REASONS[cause.code ?? ''] ?? cause.code ?? cause.message}`, { cause })
    this.missing = cause.code === 'ENOENT' || cause.code === 'ENOTDIR'
  }
}

/**
 * Reads UTF-8, or the UTF-16 that Windows PowerShell makes of `upload-server config import … > file`.
 *
 * @throws Error that names the file and says why it can't be read
 */
export function readText(path: string): string {
  try {
    const bytes = readFileSync(path)
    return bytes.toString(bytes[0] === 0xff && bytes[1] === 0xfe ? 'utf16le' : 'utf8')
  } catch (error) {
    throw new UnreadableError(path, error as NodeJS.ErrnoException)
  }
}

/**
 * Reads JSON, with comments and trailing commas as editors allow them.
 *
 * @param report is called for each name that stands twice in one object: all but the last would be lost
 * @throws Error that names line and column
 */
export async function parseJson(text: string, report: Report): Promise<unknown> {
  const plain = text.replace(/^\ufeff/, '')
  const value = await parseTolerant(plain)
  for (const { path, offset } of findRepeated(plain)) {
    report(path, `stands there twice, the second time in ${placeOf(plain, offset)}`)
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
    throw new Error(`is not JSON: ${what.toLowerCase()} in ${placeOf(text, first.offset)}`)
  }
}

function placeOf(text: string, offset: number): string {
  const lines = text.slice(0, offset).split('\n')
  return `line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1}`
}

const COMMENT_STRING_OR_BRACKET =
  /\/\/.*|\/\*[\s\S]*?(?:\*\/|$)|("(?:[^"\\]|\\[\s\S])*(?:"|\\?$))(\s*:)?|[{}[\]]/g

/** Finds the members of valid JSON whose object has an earlier one of that name. */
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
