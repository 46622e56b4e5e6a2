import type { Result } from '../client/result.ts'
import { oneLine, quote, type Terminal } from './terminal.ts'

/** The shell for which a command line is quoted. */
type Shell = Pick<Terminal, 'env' | 'platform'>

interface RepeatedOptions {
  config?: string
  server?: string
  key?: string
  tokenFrom?: string
}

/** The value of an option as it was given; a boolean for a flag. */
type Value = string | number | boolean | undefined

/**
 * A command line that completes what is missing. It contains no upload key and no password.
 *
 * @param given additional options, by their names on the command line
 */
export function commandFor(
  command: string,
  args: readonly string[],
  { config, server, key, ...given }: RepeatedOptions & Readonly<Record<string, Value>>,
  { env, platform }: Shell,
): string {
  // The URL that clients use may contain the upload key.
  const address = server?.replace(/[?#].*/, '')
  const named: Readonly<Record<string, Value>> = {
    config,
    ...given,
    server: address === undefined ? undefined : withoutPassword(address),
  }
  const flags = Object.entries(named).flatMap(([name, value]) => {
    if (value === undefined || value === false) return []
    return value === true ? [`--${name}`] : [`--${name}`, quote(String(value), platform)]
  })
  if (server !== address || (server && key !== env['UPLOAD_SERVER_KEY'])) flags.push('--key KEY')
  const guard = args.some(one => /^-./.test(one)) ? ['--'] : []
  return ['upload-server', command, ...flags, ...guard, ...args.map(one => quote(one, platform))].join(' ')
}

/** Maximum length of a command line that every shell accepts, characters. */
const LONGEST_LINE = 8000

/** How to try again, unless the command line is too long. */
export const sayRepeat = (line: string) => (line.length > LONGEST_LINE ? '' : ` Try again: ${line}`)

/** How to run the post-upload steps of stored files, without uploading them again. */
export function sayFinish(
  ids: readonly string[],
  { config, server, key, tokenFrom }: RepeatedOptions,
  shell: Shell,
): string {
  const where = server === undefined ? { config } : { server, key, 'token-from': tokenFrom }
  return `Complete the upload without sending the files again: ${commandFor('finalize', ids, where, shell)}`
}

/** @param problem the error of the post-upload steps */
export const sayUnfinished = (problem: string) =>
  `All files were stored, but a post-upload step failed: ${problem}`

/** @param dead why the links don't work, as the end of a sentence */
export function describeUnreachable(dead: string, { config }: RepeatedOptions, { platform }: Shell): string {
  const flag = config === undefined ? '' : ` --config ${quote(config, platform)}`
  return `These links work only while the server is running, and ${dead}. Start it with: upload-server${flag}`
}

/** The uploads whose post-upload steps failed. */
export const pendingOf = (results: readonly Result[]): string[] => [
  ...new Set(results.flatMap(({ finalizationId = [] }) => finalizationId)),
]

/** The remarks at the end of an upload, one line each. */
export function remarksOn(
  results: readonly Result[],
  dead: string | undefined,
  options: RepeatedOptions,
  shell: Shell,
): string[] {
  const ids = pendingOf(results)
  const problems = results.flatMap(({ url, error = [], finalizationId }) =>
    url !== undefined && finalizationId !== undefined ? error : [],
  )
  return [
    ...new Set(problems),
    ...(ids.length > 0 ? [sayFinish(ids, options, shell)] : []),
    ...(dead === undefined ? [] : [describeUnreachable(dead, options, shell)]),
  ].map(oneLine)
}

function withoutPassword(address: string): string {
  const url = new URL(address)
  if (url.password === '') return address
  url.password = 'PASSWORD'
  return url.href
}
