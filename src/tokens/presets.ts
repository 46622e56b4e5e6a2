import { readFileSync } from 'node:fs'
import { decodeText } from '../decode-text.ts'
import { systemCode } from '../errors.ts'
import { isLoopback } from '../http/proxy/no-proxy.ts'
import { membersOf } from '../members.ts'

/** Everything about an issuer of tokens that doesn't differ between its users. Sources: docs/guides/tokens.md. */
interface TokenPreset {
  /** Undefined: every user has another one. */
  readonly issuer?: string
  /** Path of the signing keys below the issuer. Undefined: `keysUrl`, else OpenID Connect Discovery. */
  readonly keysPath?: string
  readonly keysUrl?: string
  readonly algorithms: readonly string[]
  /** Header of the reverse proxy that signs, in lower case. Undefined: the token is sent as an upload key is. */
  readonly header?: string
  /** Template of the user name. */
  readonly user: string
  /** Tolerance for clocks that differ, seconds. Default: 60. */
  readonly leewayS?: number
}

const LEEWAY_S = 60

export const TOKEN_PRESETS = {
  'github-actions': {
    issuer: 'https://token.actions.githubusercontent.com',
    algorithms: ['RS256'],
    user: '{repository}',
  },
  gitlab: {
    issuer: 'https://gitlab.com',
    keysPath: '/oauth/discovery/keys',
    algorithms: ['RS256'],
    user: '{project_path}',
  },
  buildkite: {
    issuer: 'https://agent.buildkite.com',
    algorithms: ['RS256'],
    user: '{organization_slug}/{pipeline_slug}',
  },
  circleci: { algorithms: ['RS256'], user: '{oidc.circleci.com/project-id}' },
  'cloudflare-access': {
    keysPath: '/cdn-cgi/access/certs',
    algorithms: ['RS256'],
    header: 'cf-access-jwt-assertion',
    user: '{email}',
  },
  'google-iap': {
    issuer: 'https://cloud.google.com/iap',
    keysUrl: 'https://www.gstatic.com/iap/verify/public_key-jwk',
    algorithms: ['ES256'],
    header: 'x-goog-iap-jwt-assertion',
    user: '{email}',
    leewayS: 30,
  },
  pomerium: {
    keysPath: '/.well-known/pomerium/jwks.json',
    algorithms: ['ES256', 'RS256'],
    header: 'x-pomerium-jwt-assertion',
    user: '{email}',
  },
  kubernetes: {
    keysPath: '/openid/v1/jwks',
    algorithms: ['RS256', 'ES256', 'ES384', 'ES512'],
    user: '{sub}',
  },
} as const satisfies Record<string, TokenPreset>

export type TokenPresetName = keyof typeof TOKEN_PRESETS

/** Asymmetric signature algorithms (RFC 7518, 3.1; RFC 8037; RFC 9864). */
export const TOKEN_ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const

/** What the configuration says about the tokens of one issuer. */
export interface TokenSettings {
  readonly name: string
  readonly preset?: TokenPresetName | undefined
  readonly issuer?: string | undefined
  readonly jwksUrl?: string | undefined
  readonly jwksFile?: string | undefined
  readonly algorithms?: readonly string[] | undefined
  readonly header?: string | undefined
  readonly audience: string
  readonly claims: Readonly<Record<string, readonly string[]>>
  readonly user?: string | undefined
}

/** Where the signing keys of an issuer are: a file, a URL, or what OpenID Connect Discovery finds for the issuer. */
export interface KeyPlace {
  readonly kind: 'file' | 'url' | 'discovery'
  /** Path of the file, URL of the keys, or URL of the issuer. */
  readonly at: string
}

/** Reads a file with signing keys. @throws Error, whose message is the end of a sentence */
export function readKeyFile(file: string): unknown {
  let set: unknown
  try {
    set = JSON.parse(decodeText(readFileSync(file)))
  } catch (cause) {
    const code = systemCode(cause)
    throw new Error(code ? `can't be read (${code})` : 'is not JSON. It must be a JWKS', { cause })
  }
  const { keys } = membersOf(set)
  if (!Array.isArray(keys) || keys.length === 0) throw new Error('has no keys. It must be a JWKS')
  return set
}

/** What holds for a token that is accepted. */
export interface TokenRules extends Pick<TokenSettings, 'name' | 'audience' | 'claims'> {
  /** Values of `iss` that are accepted. */
  readonly issuers: readonly string[]
  readonly keys: KeyPlace
  readonly algorithms: readonly string[]
  /** In lower case. Undefined: the token is sent as an upload key is. */
  readonly header: string | undefined
  readonly user: string
  /** Seconds. */
  readonly leewayS: number
}

/** Completes settings, which have been checked, with those of their preset. */
export function rulesOf(settings: TokenSettings): TokenRules {
  const { name, audience, claims } = settings
  const preset = presetOf(settings)
  const issuer = issuerOf(settings)
  return {
    name,
    audience,
    claims,
    issuers: settings.preset === 'pomerium' ? spellingsOfPomerium(issuer) : [issuer],
    keys: keyPlaceOf(settings, issuer),
    algorithms: preset?.algorithms ?? settings.algorithms ?? [],
    header: preset?.header ?? settings.header?.toLowerCase(),
    user: settings.user ?? preset?.user ?? '{sub}',
    leewayS: preset?.leewayS ?? LEEWAY_S,
  }
}

export function presetOf({ preset }: Pick<TokenSettings, 'preset'>): TokenPreset | undefined {
  return preset && TOKEN_PRESETS[preset]
}

/** The URL of the issuer; empty if it is missing. */
export function issuerOf(settings: Pick<TokenSettings, 'preset' | 'issuer'>): string {
  return settings.issuer ?? presetOf(settings)?.issuer ?? ''
}

function keyPlaceOf(settings: TokenSettings, issuer: string): KeyPlace {
  const { jwksFile, jwksUrl } = settings
  if (jwksFile !== undefined) return { kind: 'file', at: jwksFile }
  const { keysUrl, keysPath } = presetOf(settings) ?? {}
  const url = jwksUrl ?? keysUrl ?? (keysPath && issuer.replace(/\/$/, '') + keysPath)
  return url === undefined ? { kind: 'discovery', at: issuer } : { kind: 'url', at: url }
}

/** Pomerium writes the host of the route by default, and its URL with `jwt_issuer_format: uri`. */
function spellingsOfPomerium(issuer: string): string[] {
  const { origin, host, hostname } = new URL(issuer)
  return [...new Set([issuer, origin, `${origin}/`, host, hostname])]
}

interface SharedIssuer {
  /** Claims that name an owner, project or organization permanently. */
  readonly ids: readonly string[]
  /** Claims with names of these, which can be used again, and how many segments of the name are the owner's. */
  readonly names: Readonly<Record<string, number>>
}

/** Issuers where anyone can have jobs, by host. Each job may ask for any audience. */
const SHARED_ISSUERS: Readonly<Record<string, SharedIssuer>> = {
  'token.actions.githubusercontent.com': {
    ids: ['repository_owner_id', 'repository_id', 'enterprise_id'],
    names: { repository_owner: 1, repository: 1, enterprise: 1 },
  },
  'gitlab.com': { ids: ['namespace_id', 'project_id'], names: { namespace_path: 1, project_path: 1 } },
  'agent.buildkite.com': { ids: ['organization_id', 'pipeline_id'], names: { organization_slug: 1 } },
  'oidc.circleci.com': {
    ids: ['oidc.circleci.com/project-id'],
    names: { 'oidc.circleci.com/vcs-origin': 2 },
  },
}

/** Returns what must be bound for a shared issuer; undefined for any other. */
export function sharedIssuer(issuer: string): SharedIssuer | undefined {
  const host = URL.canParse(issuer) ? new URL(issuer).hostname.replace(/\.$/, '') : ''
  return Object.hasOwn(SHARED_ISSUERS, host) ? SHARED_ISSUERS[host] : undefined
}

/** Whether a value of a claim belongs to one owner only. */
export function bindsOwner(claim: string, value: string, { ids, names }: SharedIssuer): boolean {
  const isExact = (text: string) => text !== '' && !text.includes('*')
  if (ids.includes(claim)) return isExact(value)
  const depth = names[claim] ?? 0
  const owner = value.split('/').slice(0, depth)
  return depth > 0 && owner.length === depth && owner.every(isExact)
}

/** Whether the tokens are those of GitHub Actions, whose `sub` has had two forms. */
export function isOfGithub(settings: Pick<TokenSettings, 'preset' | 'issuer'>): boolean {
  return settings.preset === 'github-actions' || /^https:\/\/token\.actions\./.test(issuerOf(settings))
}

/** Whether an issuer, or a URL of its keys, can't be replaced by others on the network: https, or http on this machine. */
export function isSafeUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, hostname, username, password } = new URL(text)
  if (username !== '' || password !== '') return false
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname.replace(/^\[|\]$/g, '')))
}
