import { createHash, randomBytes } from 'node:crypto'

/** Names of hashes in RFC 7616, section 6.1, and in OpenSSL; the strongest first. */
const HASHES: readonly (readonly [algorithm: string, hash: string])[] = [
  ['SHA-512-256', 'sha512-256'],
  ['SHA-256', 'sha256'],
  ['MD5', 'md5'],
]

/** One way a server offers to log in (RFC 9110, section 11.6.1). */
export interface Challenge {
  /** In lower case. */
  readonly scheme: string
  /** By lower-case name. */
  readonly parameters: ReadonlyMap<string, string>
}

/** A challenge of the scheme Digest that can be answered. */
export interface DigestChallenge {
  readonly nonce: string
  /** The server takes the login for right, and its own nonce for too old. */
  readonly isStale: boolean
  /** How often it was answered. */
  readonly uses: number
  /** Value of `Authorization` for a request. Each call counts as one, as the server does. */
  answer(method: string, target: string): string
}

/** Reads `WWW-Authenticate`, where several challenges may stand behind each other. Its bytes are taken for UTF-8. */
export function parseChallenges(header: string): Challenge[] {
  const text = Buffer.from(header, 'latin1').toString()
  const part = /([\w!#$%&'*+.^`|~-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*)))?/g
  const challenges: { scheme: string; parameters: Map<string, string> }[] = []
  for (const [, name = '', quoted, plain] of text.matchAll(part)) {
    const value = quoted?.replace(/\\(.)/g, '$1') ?? plain
    if (value === undefined) challenges.push({ scheme: name.toLowerCase(), parameters: new Map() })
    else challenges.at(-1)?.parameters.set(name.toLowerCase(), value)
  }
  return challenges
}

/**
 * The strongest of the challenges by RFC 7616; undefined when there is none that can be answered.
 *
 * @param cnonce nonce of the client; another one for every challenge
 */
export function chooseDigest(
  challenges: readonly Challenge[],
  { username, password }: { username: string; password: string },
  cnonce = randomBytes(16).toString('hex'),
): DigestChallenge | undefined {
  for (const [algorithm, hashName] of HASHES) {
    for (const { scheme, parameters } of challenges) {
      const [, wanted, isSession] = /^(.*?)(-sess)?$/i.exec(parameters.get('algorithm') ?? 'MD5') ?? []
      const qops = parameters
        .get('qop')
        ?.toLowerCase()
        .split(/[\s,]+/)
      const fits = scheme === 'digest' && wanted?.toUpperCase() === algorithm && parameters.has('nonce')
      if (!fits || (qops && !qops.includes('auth'))) continue
      const hash = (text: string) => createHash(hashName).update(text).digest('hex')
      const variant = { hash, cnonce, hasQop: qops !== undefined, isSession: Boolean(isSession) }
      return createDigest(parameters, variant, username, password)
    }
  }
  return undefined
}

interface Variant {
  hash(text: string): string
  readonly cnonce: string
  /** Without it, as in RFC 2069, requests are not counted. */
  readonly hasQop: boolean
  readonly isSession: boolean
}

function createDigest(
  parameters: ReadonlyMap<string, string>,
  { hash, cnonce, hasQop, isSession }: Variant,
  username: string,
  password: string,
): DigestChallenge {
  const [realm, nonce] = [parameters.get('realm') ?? '', parameters.get('nonce') ?? '']
  const opaque = parameters.get('opaque')
  const isHashed = parameters.get('userhash')?.toLowerCase() === 'true'
  const login = hash(`${username}:${realm}:${password}`)
  const secret = isSession ? hash(`${login}:${nonce}:${cnonce}`) : login
  let count = 0

  function answer(method: string, target: string): string {
    count++
    const nc = count.toString(16).padStart(8, '0')
    const request = hash(`${method}:${target}`)
    const between = hasQop ? `${nonce}:${nc}:${cnonce}:auth` : nonce
    return `Digest ${[
      `username=${quote(isHashed ? hash(`${username}:${realm}`) : username)}`,
      `realm=${quote(realm)}`,
      `nonce=${quote(nonce)}`,
      `uri=${quote(target)}`,
      `response="${hash(`${secret}:${between}:${request}`)}"`,
      ...(parameters.has('algorithm') ? [`algorithm=${parameters.get('algorithm')}`] : []),
      ...(opaque === undefined ? [] : [`opaque=${quote(opaque)}`]),
      ...(hasQop || isSession ? [`cnonce="${cnonce}"`] : []),
      ...(hasQop ? ['qop=auth', `nc=${nc}`] : []),
      ...(isHashed ? ['userhash=true'] : []),
    ].join(', ')}`
  }

  const isStale = parameters.get('stale')?.toLowerCase() === 'true'
  return {
    nonce,
    isStale,
    get uses() {
      return count
    },
    answer,
  }
}

/** Headers are sent as Latin-1: this way they hold the bytes of UTF-8, which is what is hashed. */
function quote(text: string): string {
  return `"${Buffer.from(text.replace(/["\\]/g, '\\$&')).toString('latin1')}"`
}
