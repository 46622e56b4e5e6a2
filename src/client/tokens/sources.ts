import { messageOf, systemCode, UploadError } from '../../errors.ts'
import { describeAbsence, runProgram, tailOf } from '../../flow/run-program.ts'
import { createConnections } from '../../http/connections.ts'
import { fromEnvironment } from '../../http/proxy/outgoing.ts'
import { memberAt, parseJson } from '../../members.ts'
import { TOKEN_PROVIDERS, type TokenContext, TokenError, type TokenSource } from './token-source.ts'

type Open = (audience: string, context: TokenContext) => TokenSource

const openProvider: Open = (audience, context) =>
  openProgram(['buildkite-agent', 'oidc', 'request-token', '--audience', audience], audience, context)

/**
 * Each CI provider: the variable that it sets in all jobs, and how a job gets a token.
 *
 * Sources: Buildkite: buildkite.com/docs/agent/cli/reference/oidc. CircleCI: circleci.com/docs/oidc-tokens-with-custom-claims;
 * the audience of its variable CIRCLE_OIDC_TOKEN_V2 is the organization. GitLab:
 * docs.gitlab.com/ci/secrets/id_token_authentication; the keyword `id_tokens` sets a variable when the job begins.
 */
const PROVIDERS: Readonly<Record<(typeof TOKEN_PROVIDERS)[number], readonly [variable: string, open: Open]>> =
  {
    'github-actions': ['GITHUB_ACTIONS', openGitHub],
    gitlab: ['GITLAB_CI', openVariable],
    buildkite: ['BUILDKITE', openProvider],
    circleci: [
      'CIRCLECI',
      (audience, context) => {
        const claims = JSON.stringify({ aud: audience })
        return openProgram(['circleci', 'run', 'oidc', 'get', '--claims', claims], audience, context)
      },
    ],
  }

/**
 * Where the tokens come from.
 *
 * @param from value of `--token-from`: a CI provider, or a program with arguments, separated by spaces. Undefined: the
 *   variable `UPLOAD_SERVER_TOKEN`, otherwise the CI provider that runs this job
 * @returns undefined if nothing was named or found
 */
export function findSource(
  from: string | undefined,
  audience: string,
  context: TokenContext,
): TokenSource | undefined {
  if (from === undefined && context.env['UPLOAD_SERVER_TOKEN']) return openVariable(audience, context)
  const isMeant = (name: keyof typeof PROVIDERS) =>
    from === undefined ? context.env[PROVIDERS[name][0]] === 'true' : name === from
  const name = TOKEN_PROVIDERS.find(isMeant)
  if (name !== undefined) return PROVIDERS[name][1](audience, context)
  return from === undefined ? undefined : openProgram(from.trim().split(/\s+/), audience, context)
}

/** The token of the job, from the variable `UPLOAD_SERVER_TOKEN`. Nothing can renew it. */
function openVariable(audience: string, { env }: TokenContext): TokenSource {
  return {
    name: 'UPLOAD_SERVER_TOKEN',
    isRenewable: false,
    async fetch() {
      const token = env['UPLOAD_SERVER_TOKEN']
      if (token) return readToken(token, 'The variable UPLOAD_SERVER_TOKEN')
      throw new TokenError(
        `The variable UPLOAD_SERVER_TOKEN has no token. In GitLab, add "id_tokens" with "UPLOAD_SERVER_TOKEN" and "aud: ${audience}" to the job.`,
        { isAbsent: true },
      )
    },
  }
}

/** Maximum size of a response, bytes. */
const MAX_REPLY_BYTES = 64 * 1024

/**
 * Tokens of a GitHub Actions job. The runner sets both variables only if the job has the permission `id-token: write`; a
 * GET request to the URL, with `&audience=` added, returns `{"value": TOKEN}`. Forgejo's runner does the same.
 *
 * Source: docs.github.com, "OpenID Connect reference", "Methods for requesting the OIDC token".
 */
function openGitHub(audience: string, { env, mask, learn }: TokenContext): TokenSource {
  return {
    name: 'github-actions',
    isRenewable: true,
    async fetch(signal) {
      const { ACTIONS_ID_TOKEN_REQUEST_URL: from, ACTIONS_ID_TOKEN_REQUEST_TOKEN: bearer } = env
      if (!from || !bearer)
        throw new TokenError(
          'GitHub gives this job no token. Add "permissions: id-token: write" to the job. A pull request from a fork never gets one.',
          { isAbsent: true },
        )
      const url = new URL(from)
      url.searchParams.set('audience', audience)
      learn([bearer])
      const headers = { accept: 'application/json', authorization: `Bearer ${bearer}` }
      const { http, close } = createConnections({ outgoing: fromEnvironment(env) })
      try {
        const request = { method: 'GET', url, headers, maxReplyBytes: MAX_REPLY_BYTES }
        const { status, text } = await http.send(request, signal)
        // The response may contain a token, so an error must not repeat it.
        const value = memberAt(parseJson(text), 'value')
        if (typeof value === 'string') return readToken(value, url.host)
        throw new TokenError(`${url.host} responded with ${status}, but without a token.`)
      } catch (error) {
        signal.throwIfAborted()
        if (!(error instanceof UploadError)) throw error
        const reason = hideTokens(mask(messageOf(error)))
        throw new TokenError(`Could not get a token. ${reason}`, {
          transient: error.retryable ? error : undefined,
        })
      } finally {
        close()
      }
    },
  }
}

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
function openProgram(
  words: readonly string[],
  audience: string,
  { env, cwd, mask }: TokenContext,
): TokenSource {
  const name = `"${words[0]}"`
  return {
    name,
    isRenewable: true,
    async fetch(signal) {
      const { problem, code, stdout, stderr } = await runProgram(words, {
        env: { ...env, UPLOAD_SERVER_AUDIENCE: audience },
        cwd,
        input: '',
        signal,
        keptCharacters: KEPT_CHARACTERS,
      }).catch(error => {
        signal.throwIfAborted()
        const absence = describeAbsence(words, systemCode(error))
        if (absence === undefined) throw new TokenError(`${name} failed: ${messageOf(error)}.`)
        const available = words.length === 1 ? ` Available: ${TOKEN_PROVIDERS.join(', ')}, or a program.` : ''
        throw new TokenError(`${name} ${absence}.${available}`, { isAbsent: true })
      })
      if (problem === undefined) return readToken(stdout, name)
      const said = tailOf(stderr, text => hideTokens(mask(text)))
      const transient = code === TEMPORARY_FAILURE ? { retryAfterS: undefined } : undefined
      throw new TokenError(`${name} printed no token: ${problem}${said}.`, { transient })
    },
  }
}

/** Maximum length of a token, characters. The server has the same limit. */
const MAX_TOKEN = 16 * 1024

/**
 * Reads a token, with one line break at its end.
 *
 * @param who what printed or returned it, the subject of the message
 * @throws TokenError
 */
function readToken(text: string, who: string): string {
  const token = text.replace(/\r?\n$/, '')
  const fail = (what: string) => new TokenError(`${who} returned ${what}.`)
  if (token === '') throw fail('no token')
  if (token.length > MAX_TOKEN) throw fail('more than 16 KiB, which is not a token')
  if (/[\r\n]/.test(token)) throw fail('several lines instead of a token')
  if (!/^[\x21-\x7e]+$/.test(token))
    throw fail('a text with spaces or special characters, which is not a token')
  return token
}

/** Removes what looks like a token from the text of a program or a server. Its first part begins with `{"` in Base64. */
const hideTokens = (text: string) => text.replace(/eyJ[\w-]+(?:\.[\w-]*)*/g, '[secret]')
