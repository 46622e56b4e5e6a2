import { messageOf, systemCode } from '../../errors.ts'
import { describeAbsence, type ProgramEnd, runProgram, tailOf } from '../../flow/run-program.ts'
import { beginTimeLimit } from '../../flow/time-limit.ts'
import {
  hideTokens,
  readToken,
  TOKEN_PROVIDERS,
  type TokenContext,
  TokenError,
  type TokenRequest,
  type TokenSource,
} from './token-source.ts'

/** Exit code of a transient failure (EX_TEMPFAIL of sysexits.h). */
const TEMPORARY_FAILURE = 75
/** How much of the output is read, characters. More than any token, so that a longer output is noticed. */
const KEPT_CHARACTERS = 20_000

/**
 * Tokens that a program prints. It runs without a shell, in the working directory, with the environment of this process and
 * the audience in `UPLOAD_SERVER_AUDIENCE`.
 *
 * @param words program and arguments
 */
export function openProgram(
  words: readonly string[],
  { audience, limitMs }: TokenRequest,
  { env, cwd, mask }: TokenContext,
): TokenSource {
  const [name = ''] = words

  async function run(outer: AbortSignal): Promise<ProgramEnd> {
    const late = () =>
      new TokenError(`"${name}" took longer than ${limitMs / 1000} s to print a token, and was killed.`, {
        isTransient: true,
      })
    const limit = beginTimeLimit(limitMs, outer, late)
    try {
      return await runProgram(words, {
        env: { ...env, UPLOAD_SERVER_AUDIENCE: audience },
        cwd,
        input: '',
        signal: limit.signal,
        keptCharacters: KEPT_CHARACTERS,
      })
    } catch (error) {
      outer.throwIfAborted()
      if (error instanceof TokenError) throw error
      const absence = describeAbsence(words, systemCode(error))
      const available = words.length === 1 ? ` Available: ${TOKEN_PROVIDERS.join(', ')}, or a program.` : ''
      if (absence === undefined) throw new TokenError(`"${name}" failed: ${messageOf(error)}.`)
      throw new TokenError(`"${name}" ${absence}.${available}`, { isAbsent: true })
    } finally {
      limit.end()
    }
  }

  return {
    name: `"${name}"`,
    isRenewable: true,
    async fetch(signal) {
      const { problem, code, stdout, stderr } = await run(signal)
      const said = tailOf(stderr, text => hideTokens(mask(text)))
      if (problem !== undefined)
        throw new TokenError(`"${name}" printed no token: ${problem}${said}.`, {
          isTransient: code === TEMPORARY_FAILURE,
        })
      return readToken(stdout, `"${name}"`)
    },
  }
}
