import { createHash, randomBytes } from 'node:crypto'

/** Hash algorithms by their names in RFC 7616, section 6.1, and in OpenSSL, strongest first. */
const HASHES: readonly (readonly [algorithm: string, hash: string])[] = [
  ['SHA-256', 'sha256'],
  ['MD5', 'md5'],
]

/** A challenge of a server: one way to log in (RFC 9110, section 11.6.1). */
export interface Challenge {
  /** Name of the scheme, in lower case. */
  readonly scheme: string
  /** Parameters by their names in lower case. */
  readonly parameters: ReadonlyMap<string, string>
}

/** A supported challenge of the scheme Digest. */
export interface DigestChallenge {
  readonly nonce: string
  /** If true, the credentials were correct, but the nonce has expired. */
  readonly isStale: boolean
  /** Number of requests that have used it. */
  readonly uses: number
  /** Creates the value of `Authorization` for a request. Each call increments the nonce count, as the server does. */
  answer(method: string, target: string): string
}

/** Parses `WWW-Authenticate`, which may contain several challenges. Its bytes are read as UTF-8. */
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
 * Chooses the challenge with the strongest algorithm (RFC 7616). Undefined if none is supported.
 *
 * @param cnonce nonce of the client, a new one for every challenge
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
      const [realm, nonce] = [parameters.get('realm') ?? '', parameters.get('nonce') ?? '']
      const opaque = parameters.get('opaque')
      const login = hash(`${username}:${realm}:${password}`)
      const secret = isSession ? hash(`${login}:${nonce}:${cnonce}`) : login
      let uses = 0
      return {
        nonce,
        isStale: parameters.get('stale')?.toLowerCase() === 'true',
        get uses() {
          return uses
        },
        answer(method, target) {
          const nc = (++uses).toString(16).padStart(8, '0')
          // As in RFC 2069, requests have no nonce count if the server offers no "qop".
          const between = qops ? `${nonce}:${nc}:${cnonce}:auth` : nonce
          return `Digest ${[
            `username=${quote(username)}`,
            `realm=${quote(realm)}`,
            `nonce=${quote(nonce)}`,
            `uri=${quote(target)}`,
            `response="${hash(`${secret}:${between}:${hash(`${method}:${target}`)}`)}"`,
            ...(parameters.has('algorithm') ? [`algorithm=${parameters.get('algorithm')}`] : []),
            ...(opaque === undefined ? [] : [`opaque=${quote(opaque)}`]),
            ...(qops || isSession ? [`cnonce="${cnonce}"`] : []),
            ...(qops ? ['qop=auth', `nc=${nc}`] : []),
          ].join(', ')}`
        },
      }
    }
  }
  return undefined
}

/** Quotes text for a header. Node sends headers as Latin-1, so each byte of the UTF-8 text, which is hashed, becomes a character. */
function quote(text: string): string {
  return `"${Buffer.from(text.replace(/["\\]/g, '\\$&')).toString('latin1')}"`
}
