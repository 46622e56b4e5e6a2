import { readFile } from 'node:fs/promises'
import type { AnyAuthMethod, AuthenticationType } from 'ssh2'
import { decodeText } from '../../decode-text.ts'
import { systemCode } from '../../errors.ts'
import { Problem } from '../../problem.ts'

/** Credentials of a login, in the order in which they are tried: private key, agent, password. */
export interface Credentials {
  readonly username: string
  readonly password?: string | undefined
  readonly privateKey?: string | undefined
  readonly privateKeyFile?: string | undefined
  readonly passphrase?: string | undefined
  /** Path of the agent's socket. */
  readonly agent?: string | undefined
}

export type Authentication = ReturnType<typeof createAuthentication>

/**
 * Tries only methods that the server offers, and the password once, because servers lock accounts after several failures.
 *
 * @param key text of the private key
 */
export function createAuthentication(
  { username, password, passphrase, agent }: Credentials,
  key: string | undefined,
) {
  const left: AnyAuthMethod[] = []
  if (key !== undefined) left.push({ type: 'publickey', username, key, passphrase })
  if (agent !== undefined) left.push({ type: 'agent', username, agent })
  if (password !== undefined) {
    left.push({ type: 'password', username, password })
    left.push({
      type: 'keyboard-interactive',
      username,
      prompt: (_name, _instructions, _language, prompts, finish) =>
        finish(prompts.map(({ echo }) => (echo ? '' : password))),
    })
  }
  const tried: string[] = []
  let takes: readonly string[] = []
  return {
    /** Returns the next method that the server accepts, or false if none is left. */
    next(offered: readonly AuthenticationType[] | null): AnyAuthMethod | false {
      // The response to "none" lists the methods that the server accepts.
      if (offered === null) return { type: 'none', username }
      takes = offered
      for (let method = left.shift(); method; method = left.shift()) {
        const isSecondPassword = method.type === 'keyboard-interactive' && tried.includes('password')
        if (isSecondPassword || !takes.includes(method.type === 'agent' ? 'publickey' : method.type)) continue
        tried.push(method.type)
        return method
      }
      return false
    },
    /** Explains the failure if no method is left. */
    explain(): string {
      const words = takes.join(', ') || 'nothing'
      if (tried.length > 0) return `it refused ${tried.join(', ')} (it accepts: ${words})`
      return `it accepts only ${words}, and no credentials for that are configured`
    },
  }
}

/**
 * Reads the private key of the options, if there is one.
 *
 * @param parse returns an error if the key can't be used
 * @throws Problem
 */
export async function readKey(
  { privateKey, privateKeyFile, passphrase }: Credentials,
  parse: (text: string, passphrase?: string) => unknown,
): Promise<string | undefined> {
  const name = privateKeyFile === undefined ? 'privateKey' : 'privateKeyFile'
  const fail = (cause: unknown): never => {
    throw new Problem(`"${name}" can't be read (${systemCode(cause)})`, { cause })
  }
  const text =
    privateKeyFile === undefined ? privateKey : decodeText(await readFile(privateKeyFile).catch(fail))
  if (text === undefined) return undefined
  const parsed = parse(text, passphrase)
  const fault = findKeyFault(text)
  if (fault === undefined && !(parsed instanceof Error)) return text
  const advice =
    passphrase === undefined ? 'Set "passphrase" if the private key is encrypted.' : 'Check "passphrase".'
  throw new Problem(`"${name}" is not a usable private key`, { advice: fault ?? advice, cause: parsed })
}

/** Returns a sentence about a text that is not a usable private key, whatever the passphrase is, or undefined. */
export function findKeyFault(text: string): string | undefined {
  if (/^\s*(?:(?:ssh|ecdsa|sk)-[\w@.-]+ AAAA|---- BEGIN SSH2 PUBLIC|-----BEGIN (?:\w+ )?PUBLIC)/.test(text))
    return 'It is the public key. Use the private key, whose file has the same name without ".pub".'
  if (/^-----BEGIN .*\\n/.test(text.trim()))
    return 'It contains "\\n" as two characters. Write line breaks instead, or use "privateKeyFile".'
  return /^\s*PuTTY-User-Key-File-(?![12]:)/.test(text)
    ? 'Its PuTTY format is newer than 2. Export it with PuTTYgen: Conversions, Export OpenSSH key.'
    : undefined
}
