import { openGitHub } from './github.ts'
import { openProgram } from './program.ts'
import {
  readToken,
  TOKEN_PROVIDERS,
  type TokenContext,
  TokenError,
  type TokenProvider,
  type TokenRequest,
  type TokenSource,
} from './token-source.ts'

type Open = (request: TokenRequest, context: TokenContext) => TokenSource

/**
 * Each CI provider: the variable that it sets in all jobs, and how a job gets a token.
 *
 * Sources: GitHub as in `github.ts`. Buildkite: buildkite.com/docs/agent/cli/reference/oidc. CircleCI:
 * circleci.com/docs/oidc-tokens-with-custom-claims; the audience of its variable CIRCLE_OIDC_TOKEN_V2 is the organization.
 * GitLab: docs.gitlab.com/ci/secrets/id_token_authentication; the keyword `id_tokens` sets a variable when the job begins.
 */
const PROVIDERS: Readonly<Record<TokenProvider, { readonly variable: string; readonly open: Open }>> = {
  'github-actions': { variable: 'GITHUB_ACTIONS', open: openGitHub },
  gitlab: { variable: 'GITLAB_CI', open: openVariable },
  buildkite: {
    variable: 'BUILDKITE',
    open: (request, context) =>
      openProgram(
        ['buildkite-agent', 'oidc', 'request-token', '--audience', request.audience],
        request,
        context,
      ),
  },
  circleci: {
    variable: 'CIRCLECI',
    open: (request, context) =>
      openProgram(
        ['circleci', 'run', 'oidc', 'get', '--claims', JSON.stringify({ aud: request.audience })],
        request,
        context,
      ),
  },
}

/** The token of the job, from the variable `UPLOAD_SERVER_TOKEN`. Nothing can renew it. */
function openVariable({ audience }: TokenRequest, { env }: TokenContext): TokenSource {
  return {
    name: 'UPLOAD_SERVER_TOKEN',
    isRenewable: false,
    async fetch() {
      const token = env['UPLOAD_SERVER_TOKEN'] ?? ''
      if (token === '')
        throw new TokenError(
          `The variable UPLOAD_SERVER_TOKEN has no token. In GitLab, add "id_tokens" with "UPLOAD_SERVER_TOKEN" and "aud: ${audience}" to the job.`,
          { isAbsent: true },
        )
      return readToken(token, 'The variable UPLOAD_SERVER_TOKEN')
    },
  }
}

const isProvider = (text: string): text is TokenProvider => TOKEN_PROVIDERS.some(name => name === text)

/**
 * Where the tokens come from.
 *
 * @param from value of `--token-from`: a CI provider, or a program with arguments, separated by spaces. Undefined: the
 *   variable `UPLOAD_SERVER_TOKEN`, otherwise the CI provider that runs this job
 * @returns undefined if nothing was named or found
 */
export function findSource(
  from: string | undefined,
  request: TokenRequest,
  context: TokenContext,
): TokenSource | undefined {
  if (from !== undefined)
    return isProvider(from)
      ? PROVIDERS[from].open(request, context)
      : openProgram(from.trim().split(/\s+/), request, context)
  if (context.env['UPLOAD_SERVER_TOKEN']) return openVariable(request, context)
  const here = TOKEN_PROVIDERS.find(name => context.env[PROVIDERS[name].variable] === 'true')
  return here && PROVIDERS[here].open(request, context)
}
