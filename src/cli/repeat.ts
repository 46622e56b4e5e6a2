import type { Result } from '../client/result.ts'
import { hasKey } from '../client/tokens/token-source.ts'
import { type Command, spell, type Typed } from './define.ts'
import { finalize } from './finalize/index.ts'
import { config, serverUrl } from './flags.ts'
import { oneLine, quote, type Terminal } from './terminal.ts'

/** The shell for which a command line is quoted. */
type Shell = Pick<Terminal, 'platform'>

/**
 * A command line with other arguments, and the flags that were typed, if the command has them. It contains no upload key and no
 * password.
 */
export function lineFor(
  { name, flags = {} }: Pick<Command, 'name' | 'flags'>,
  words: readonly string[],
  typed: readonly Typed[],
  { platform }: Shell,
): string {
  const parts = typed.flatMap(([key, text]) => {
    const flag = flags[key]
    if (!flag || flag.isForAllFiles) return []
    if (text === undefined) return [spell(key, flag)]
    if (flag.isSecret) return [spell(key, flag), flag.value?.shown.toUpperCase() ?? '']
    return [spell(key, flag), quote(flag.value === serverUrl ? withoutSecrets(text) : text, platform)]
  })
  const hidden = typed.some(
    ([key, text]) => key === 'server' && text && hasKey(new URL(serverUrl.read(text))),
  )
  if (hidden && flags['server']) parts.push('--key', 'KEY')
  const guard = words.some(one => /^-./.test(one)) ? ['--'] : []
  const command = ['upload-server', ...(name === '' ? [] : [name])]
  return [...command, ...parts, ...guard, ...words.map(one => quote(one, platform))].join(' ')
}

/** The URL that clients use may contain the upload key, and the password of a reverse proxy. */
function withoutSecrets(typed: string): string {
  const address = serverUrl.read(typed).replace(/[?#].*/, '')
  const url = new URL(address)
  if (url.password === '') return address
  url.password = 'PASSWORD'
  return url.href
}

/** Maximum length of a command line that every shell accepts, characters. */
const LONGEST_LINE = 8000

/** How to try again, unless the command line is too long. */
export const sayRepeat = (line: string) => (line.length > LONGEST_LINE ? '' : ` Try again: ${line}`)

/** How to run the post-upload steps of stored files, without uploading them again. */
export function sayFinish(ids: readonly string[], typed: readonly Typed[], shell: Shell): string {
  const isRemote = typed.some(([name]) => name === 'server')
  const where = typed.filter(([name]) => (name === 'config') !== isRemote)
  return `Complete the upload without sending the files again: ${lineFor(finalize, ids, where, shell)}`
}

/** @param problem the error of the post-upload steps */
export const sayUnfinished = (problem: string) =>
  `All files were stored, but a post-upload step failed: ${problem}`

/** @param dead why the links don't work, as the end of a sentence */
export function describeUnreachable(dead: string, typed: readonly Typed[], shell: Shell): string {
  const start = lineFor({ name: '', flags: { config } }, [], typed, shell)
  return `These links work only while the server is running, and ${dead}. Start it with: ${start}`
}

/** The uploads whose post-upload steps failed. */
export const pendingOf = (results: readonly Result[]): string[] => [
  ...new Set(results.flatMap(({ finalizationId = [] }) => finalizationId)),
]

/** The remarks at the end of an upload, one line each. */
export function remarksOn(
  results: readonly Result[],
  dead: string | undefined,
  typed: readonly Typed[],
  shell: Shell,
): string[] {
  const ids = pendingOf(results)
  const problems = results.flatMap(({ url, error = [], finalizationId }) =>
    url !== undefined && finalizationId !== undefined ? error : [],
  )
  return [
    ...new Set(problems),
    ...(ids.length > 0 ? [sayFinish(ids, typed, shell)] : []),
    ...(dead === undefined ? [] : [describeUnreachable(dead, typed, shell)]),
  ].map(oneLine)
}
