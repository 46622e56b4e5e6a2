import type { Refusal } from '../../http/client.ts'
import { chooseDigest, type DigestChallenge, parseChallenges } from './digest.ts'

export interface WebDavCredentials {
  readonly username: string
  readonly password: string
  readonly authType: 'basic' | 'digest'
}

/** A refusal whose reason the server need not repeat. */
export const because = (meaning: string, advice?: string): Refusal => ({ meaning, reason: '', advice })

/** Authentication of requests: none, Basic or Digest. */
export interface WebDavLogin {
  /** If true, the first request should have no body, because its response decides how the others log in. */
  readonly isUnknown: boolean
  /** Returns the value of `Authorization`, if there is one. */
  authorize(method: string, target: string): string | undefined
  /**
   * Reads the challenges of a 401.
   *
   * @param sent value of `Authorization` in the rejected request
   * @returns whether another attempt may succeed
   */
  handleChallenges(challenges: string, sent: string | undefined): boolean
  /** Returns the reason and the advice for a login that was finally rejected. */
  explain(challenges: string): Refusal
}

export function createLogin(credentials: WebDavCredentials | undefined): WebDavLogin {
  const { username, password, authType } = credentials ?? {}
  const basic = authType === 'basic' && Buffer.from(`${username}:${password}`).toString('base64')
  let challenge: DigestChallenge | undefined

  return {
    get isUnknown() {
      return authType === 'digest' && challenge === undefined
    },
    authorize: (method, target) => (basic ? `Basic ${basic}` : challenge?.answer(method, target)),
    handleChallenges(header, sent) {
      if (credentials === undefined || basic) return false
      const next = chooseDigest(parseChallenges(header), credentials)
      if (next === undefined) return false
      // A server may reject a used nonce without `stale`, or another request has got a new nonce.
      const isOld =
        challenge !== undefined && (challenge.uses > 1 || !sent?.includes(`nonce="${challenge.nonce}"`))
      challenge = next
      return sent === undefined || next.isStale || isOld
    },
    explain(challenges) {
      if (authType === undefined) return because('it requires a login', 'Set "username" and "password".')
      const offered = parseChallenges(challenges).map(({ scheme }) => scheme)
      const other = authType === 'basic' ? 'digest' : 'basic'
      return offered.includes(other) && !offered.includes(authType)
        ? because('it requires another authentication scheme', `Set "authType" to "${other}".`)
        : because('it rejected the login', 'Check "username" and "password".')
    },
  }
}
