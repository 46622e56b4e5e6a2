import type { Refusal } from '../../http/client.ts'
import { chooseDigest, type DigestChallenge, parseChallenges } from './digest.ts'

export interface WebDavCredentials {
  readonly username: string
  readonly password: string
  readonly authType: 'basic' | 'digest'
}

/** A refusal whose reason the server need not repeat. */
export const because = (meaning: string, advice?: string): Refusal => ({ meaning, reason: '', advice })

export type WebDavLogin = ReturnType<typeof createLogin>

/** Authentication of requests: none, Basic or Digest. */
export function createLogin(credentials: WebDavCredentials | undefined) {
  const { username, password, authType } = credentials ?? {}
  const basic = authType === 'basic' && Buffer.from(`${username}:${password}`).toString('base64')
  let challenge: DigestChallenge | undefined

  return {
    /** If true, the first request should have no body, because its response decides how the others log in. */
    get isUnknown() {
      return authType === 'digest' && challenge === undefined
    },
    /** Returns the value of `Authorization`, if there is one. */
    authorize: (method: string, target: string) =>
      basic ? `Basic ${basic}` : challenge?.answer(method, target),
    /** Reads the challenges of a 401. Returns whether another attempt than `sent` (`Authorization`) may succeed. */
    handleChallenges(header: string, sent: string | undefined): boolean {
      if (credentials === undefined || basic) return false
      const next = chooseDigest(parseChallenges(header), credentials)
      if (next === undefined) return false
      // A server may reject a used nonce without `stale`, or another request has got a new nonce.
      const isOld =
        challenge !== undefined && (challenge.uses > 1 || !sent?.includes(`nonce="${challenge.nonce}"`))
      challenge = next
      return sent === undefined || next.isStale || isOld
    },
    /** Returns the reason and the advice for a login that was finally rejected. */
    explain(challenges: string): Refusal {
      if (authType === undefined) return because('it requires a login', 'Set "username" and "password".')
      const offered = parseChallenges(challenges).map(({ scheme }) => scheme)
      const other = authType === 'basic' ? 'digest' : 'basic'
      return offered.includes(other) && !offered.includes(authType)
        ? because('it requires another authentication scheme', `Set "authType" to "${other}".`)
        : because('it rejected the login', 'Check "username" and "password".')
    },
  }
}
