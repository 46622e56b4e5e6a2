import { messageOf } from '../errors.ts'
import { keysOf } from '../members.ts'
import { ownFile } from '../options.ts'
import * as z from '../packages/zod.ts'
import { claimsIn, isUserTemplate, matches } from '../tokens/claims.ts'
import {
  bindsOwner,
  isOfGithub,
  isSafeUrl,
  issuerOf,
  presetOf,
  readKeyFile,
  sharedIssuer,
  TOKEN_ALGORITHMS,
  TOKEN_PRESETS,
  type TokenSettings,
} from '../tokens/presets.ts'
import { permissions } from './permissions.ts'
import type { OnProblem } from './problems.ts'
import { tokenHeader } from './proxy-users.ts'
import { list, optional, textThat } from './values.ts'

const keyUrl = textThat(isSafeUrl, 'must be an https URL, or http on a loopback address')

const issuerUrl = keyUrl.refine(url => !/[?#]/.test(url), 'must not have a query or a fragment')

const tokenEntry = z
  .strictObject({
    name: z
      .string()
      .regex(/^[^:\p{Cc}]{1,64}$/u, 'must be 1 to 64 characters without a colon')
      .describe('Name of these tokens, shown in the log and in the history: "token NAME: USER".'),
    preset: optional(
      z.enum(keysOf(TOKEN_PRESETS)),
      'Who issues the tokens. It sets issuer, algorithms, header and user, and where the signing keys are.',
    ),
    issuer: optional(
      issuerUrl,
      'Issuer, as the claim "iss" has it: an https URL. Default: that of the preset. Required for circleci, cloudflare-access, pomerium, kubernetes, and without a preset.',
    ),
    audience: z.string().min(1).describe('Required value of the claim "aud", usually server.publicUrl.'),
    claims: z
      .record(z.string().min(1), z.array(z.string()).min(1, 'must have at least one value'))
      .default({})
      .describe(
        'Claims that a token must have, each with the allowed values. "*" matches one or more characters other than "/".',
      ),
    user: optional(
      z.string().min(1).refine(isUserTemplate, 'must be text with placeholders such as "{repository}"'),
      'Template of the user name, made of claims in braces. Default: by preset, otherwise "{sub}".',
    ),
    jwksUrl: optional(
      keyUrl,
      'URL of the signing keys (JWKS). Default: by preset. Required without a preset, unless jwksFile is set.',
    ),
    jwksFile: optional(
      ownFile(),
      'File with the signing keys (JWKS), for an issuer that the server cannot reach.',
    ),
    algorithms: optional(
      z.array(z.enum(TOKEN_ALGORITHMS)).min(1),
      'Allowed signature algorithms. Required without a preset.',
    ),
    header: optional(
      tokenHeader,
      'Header in which a reverse proxy sends the token. Default: by preset, otherwise the headers of upload keys.',
    ),
    ...permissions,
  })
  .superRefine((entry, context) => {
    checkEntry(entry, (path, message) => context.addIssue({ code: 'custom', path: [...path], message }))
  })

/** `auth.tokens` of the configuration. */
export const tokenList = list(
  tokenEntry,
  'Signed tokens (JWT) that are accepted instead of an upload key, of CI jobs and reverse proxies.',
)

type Report = (path: readonly string[], message: string) => void

function checkEntry(entry: TokenSettings, report: Report): void {
  const preset = presetOf(entry)
  if (issuerOf(entry) === '') report(['issuer'], 'is missing. Set it to the claim "iss" of the tokens')
  if (preset === undefined) {
    if (entry.algorithms === undefined)
      report(['algorithms'], 'is missing. Set it to what the issuer signs with, for example ["RS256"]')
    if (entry.jwksUrl === undefined && entry.jwksFile === undefined)
      report(['jwksUrl'], 'is missing. Set it to the URL of the signing keys, or set jwksFile')
  } else {
    for (const option of ['algorithms', 'header'] as const)
      if (entry[option] !== undefined) report([option], 'is set by the preset. Remove it')
  }
  if (entry.jwksUrl !== undefined && entry.jwksFile !== undefined)
    report(['jwksFile'], 'must not be set together with jwksUrl')
  if (isOfGithub(entry)) checkSubject(entry, report)
  checkOwner(entry, report)
}

/** GitHub has changed the form of `sub`, and repositories can change it, too. */
function checkSubject({ claims, user }: TokenSettings, report: Report): void {
  const why = 'because its form differs between repositories. Use repository_owner_id or repository_id'
  if ('sub' in claims) report(['claims', 'sub'], `must not be used for GitHub, ${why}`)
  if (user !== undefined && claimsIn(user).includes('sub'))
    report(['user'], `must not have "{sub}" for GitHub, ${why.replace('repository_owner_id or ', '')}`)
}

/** On a shared issuer, any job of anyone can ask for a token with our audience. */
function checkOwner(entry: TokenSettings, report: Report): void {
  const shared = sharedIssuer(issuerOf(entry))
  if (!shared) return
  const binding = [...shared.ids, ...Object.keys(shared.names)]
  const bound = Object.entries(entry.claims).filter(([claim]) => binding.includes(claim))
  for (const [claim, values] of bound)
    if (values.some(value => /^\**$/.test(value)))
      report(['claims', claim], 'has "*" or an empty value, which anyone has. Name your own')
  if (!bound.some(([claim, values]) => values.every(value => bindsOwner(claim, value, shared))))
    report(
      ['claims'],
      `must name your organization or project, because anyone can have jobs at this issuer that ask for this audience. Set ${listOr(binding)}, without "*" in the name of the owner`,
    )
}

const listOr = (names: readonly string[]) => names.join(', ').replace(/, ([^,]*)$/, ' or $1')

/** Checks the files with signing keys. */
export function checkKeyFiles(entries: readonly TokenSettings[], report: OnProblem): void {
  for (const [index, { jwksFile }] of entries.entries()) {
    try {
      if (jwksFile !== undefined) readKeyFile(jwksFile)
    } catch (error) {
      report(`auth.tokens[${index}].jwksFile`, messageOf(error))
    }
  }
}

/** Finds weak points of valid entries. Returns sentences for the operator. */
export function findTokenRisks(entries: readonly TokenSettings[]): string[] {
  return entries.flatMap((entry, index) => {
    const risks: string[] = []
    const shared = sharedIssuer(issuerOf(entry))
    const claims = Object.keys(entry.claims)
    const names = Object.keys(shared?.names ?? {}).filter(name => claims.includes(name))
    const [name] = names
    if (shared && name !== undefined && !shared.ids.some(id => claims.includes(id)))
      risks.push(
        `"${name}" is a name, which others can use again after it was renamed or deleted. Add ${listOr(shared.ids)}`,
      )
    const isOfJobs = entry.preset !== undefined && presetOf(entry)?.header === undefined
    if (!shared && isOfJobs && claims.length === 0)
      risks.push(`every job of ${issuerOf(entry)} can get a token with this audience. Set claims`)
    const events = entry.claims['event_name']
    if (isOfGithub(entry) && (!events || events.some(one => OF_FORKS.some(event => matches(event, one)))))
      risks.push(
        'workflows on pull_request_target and workflow_run get tokens of your repository, also for changes by other people. List the events that may upload in "event_name"',
      )
    if (entry.preset === 'circleci' && !claims.includes(ORIGIN))
      risks.push(`jobs for forks get tokens if the project passes secrets to them. Add "${ORIGIN}"`)
    return risks.map(risk => `auth.tokens[${index}].claims: ${risk}.`)
  })
}

const OF_FORKS = ['pull_request_target', 'workflow_run']
const ORIGIN = 'oidc.circleci.com/vcs-origin'
