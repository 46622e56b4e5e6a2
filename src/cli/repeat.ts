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
    const spelling = spell(key, flag)
    if (text === undefined) return [spelling]
    if (flag.isSecret) return [spelling, flag.value?.shown.toUpperCase() ?? '']
    if (flag.value !== serverUrl) return [spelling, quote(text, platform)]
    // The URL that clients use may contain the upload key, and the password of a reverse proxy.
    const url = serverUrl.read(text) ?? ''
    const shown = url.replace(/[?#].*/, '').replace(/^(https?:\/\/[^/:@]*):[^/]*@/i, '$1:PASSWORD@')
    return [spelling, quote(shown, platform), ...(hasKey(new URL(url)) ? ['--key', 'KEY'] : [])]
  })
  const guard = words.some(one => /^-./.test(one)) ? ['--'] : []
  const quoted = words.map(one => quote(one, platform))
  return ['upload-server', name, ...parts, ...guard, ...quoted].filter(Boolean).join(' ')
}

/** Maximum length of a command line that every shell accepts, characters. */
const LONGEST_LINE = 8000

/** How to try again, unless the command line is too long. */
export const sayRepeat = (line: string) => (line.length > LONGEST_LINE ? '' : ` Try again: ${line}`)

/** @param problem the error of the post-upload steps */
export const sayUnfinished = (problem: string) =>
  `All files were stored, but a post-upload step failed: ${problem}`

/**
 * The remarks at the end of an upload, one line each: post-upload steps that failed, and links that don't work.
 *
 * @param dead why the links don't work, as the end of a sentence
 */
export function remarksOn(
  results: readonly Result[],
  dead: string | undefined,
  typed: readonly Typed[],
  shell: Shell,
): string[] {
  const problems = results.flatMap(({ url, error = [], finalizationId }) =>
    url !== undefined && finalizationId !== undefined ? error : [],
  )
  const ids = [...new Set(results.flatMap(({ finalizationId = [] }) => finalizationId))]
  const isRemote = typed.some(([name]) => name === 'server')
  const where = typed.filter(([name]) => (name === 'config') !== isRemote)
  const remarks = [...new Set(problems)]
  if (ids.length > 0)
    remarks.push(
      `Complete the upload without sending the files again: ${lineFor(finalize, ids, where, shell)}`,
    )
  if (dead !== undefined) {
    const start = lineFor({ name: '', flags: { config } }, [], typed, shell)
    remarks.push(`These links work only while the server is running, and ${dead}. Start it with: ${start}`)
  }
  return remarks.map(oneLine)
}
