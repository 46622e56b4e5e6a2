import { chooseDigest, type DigestChallenge, parseChallenges } from './digest.ts'

export interface WebDavCredentials {
  readonly username: string
  readonly password: string
  readonly authType: 'basic' | 'digest'
}

/** What requests say of who sends them. */
export interface WebDavLogin {
  /** Whether the first request should be one without a body, since its answer decides how the others log in. */
  readonly isUnknown: boolean
  /** Value of `Authorization`, if any. */
  authorize(method: string, target: string): string | undefined
  /**
   * Learns from a refusal (401).
   *
   * @param sent what `authorize` gave for the refused request
   * @returns whether another attempt may succeed
   */
  learn(challenges: string, sent: string | undefined): boolean
  /** Words for a refusal that stays. */
  explain(challenges: string): string
}

export function createLogin(credentials: WebDavCredentials | undefined): WebDavLogin {
  if (credentials === undefined) return createAnonymous()
  return credentials.authType === 'digest' ? createDigestLogin(credentials) : createBasicLogin(credentials)
}

function createAnonymous(): WebDavLogin {
  return {
    isUnknown: false,
    authorize: () => undefined,
    learn: () => false,
    explain: () => 'it requires a login. Set "username" and "password".',
  }
}

function createBasicLogin({ username, password }: WebDavCredentials): WebDavLogin {
  const value = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
  return {
    isUnknown: false,
    authorize: () => value,
    learn: () => false,
    explain: challenges => explainRefusal(challenges, 'basic'),
  }
}

function createDigestLogin(credentials: WebDavCredentials): WebDavLogin {
  let challenge: DigestChallenge | undefined

  return {
    get isUnknown() {
      return challenge === undefined
    },
    authorize: (method, target) => challenge?.answer(method, target),
    learn(header, sent) {
      const next = chooseDigest(parseChallenges(header), credentials)
      if (next === undefined) return false
      // A nonce that was used before may be used up without the server saying so, or another request has a new one.
      const isOld =
        challenge !== undefined && (challenge.uses > 1 || !sent?.includes(`nonce="${challenge.nonce}"`))
      challenge = next
      return sent === undefined || next.isStale || isOld
    },
    explain: challenges => explainRefusal(challenges, 'digest'),
  }
}

function explainRefusal(challenges: string, authType: string): string {
  const offered = parseChallenges(challenges).map(({ scheme }) => scheme)
  const other = authType === 'basic' ? 'digest' : 'basic'
  if (offered.includes(other) && !offered.includes(authType))
    return `it requires another authentication scheme. Set "authType" to "${other}".`
  return 'it rejected the login. Check "username" and "password".'
}
