import type { AnyAuthMethod, AuthenticationType } from 'ssh2'

/** Credentials of a login, in the order in which they are tried: private key, agent, password. */
export interface SftpCredentials {
  readonly username: string
  readonly password?: string | undefined
  /** A private key whose format and passphrase were checked. */
  readonly key?: { readonly text: string; readonly passphrase?: string | undefined } | undefined
  /** Path of the agent's socket. */
  readonly agent?: string | undefined
}

export interface Authentication {
  /** Returns the next method that the server accepts, or false if none is left. */
  next(offered: readonly AuthenticationType[] | null): AnyAuthMethod | false
  /** Explains the failure if no method is left. */
  explain(): string
}

/** Names of methods in the protocol (RFC 4252). */
const PROTOCOL_NAMES: Partial<Record<AuthenticationType, AuthenticationType>> = { agent: 'publickey' }

/** Tries only methods that the server offers, and the password once, because servers lock accounts after several failures. */
export function createAuthentication(credentials: SftpCredentials): Authentication {
  const left = listMethods(credentials)
  const tried: string[] = []
  let takes: readonly string[] = []

  function next(offered: readonly AuthenticationType[] | null): AnyAuthMethod | false {
    // The response to "none" lists the methods that the server accepts.
    if (offered === null) return { type: 'none', username: credentials.username }
    takes = offered
    for (let method = left.shift(); method; method = left.shift()) {
      const isSecondPassword = method.type === 'keyboard-interactive' && tried.includes('password')
      if (isSecondPassword || !offered.includes(PROTOCOL_NAMES[method.type] ?? method.type)) continue
      tried.push(method.type)
      return method
    }
    return false
  }

  function explain(): string {
    const words = takes.join(', ') || 'nothing'
    if (tried.length > 0) return `it refused ${tried.join(', ')} (it accepts: ${words})`
    return `it accepts only ${words}, and no credentials for that are configured`
  }

  return { next, explain }
}

function listMethods({ username, password, key, agent }: SftpCredentials): AnyAuthMethod[] {
  return [
    ...(key ? [{ type: 'publickey' as const, username, key: key.text, passphrase: key.passphrase }] : []),
    ...(agent === undefined ? [] : [{ type: 'agent' as const, username, agent }]),
    ...(password === undefined ? [] : listPasswordMethods(username, password)),
  ]
}

function listPasswordMethods(username: string, password: string): AnyAuthMethod[] {
  return [
    { type: 'password', username, password },
    {
      type: 'keyboard-interactive',
      username,
      prompt: (_name, _instructions, _language, prompts, finish) =>
        finish(prompts.map(({ echo }) => (echo ? '' : password))),
    },
  ]
}
