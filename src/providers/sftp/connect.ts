import { readFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import type { Client, ServerHostKeyAlgorithm, SFTPWrapper } from 'ssh2'
import { decodeText } from '../../decode-text.ts'
import { systemCode } from '../../errors.ts'
import { onAbort } from '../../flow/cancellation.ts'
import { excerpt } from '../../http/excerpt.ts'
import { importOptional } from '../../packages/optional.ts'
import { Problem } from '../../problem.ts'
import type { Context } from '../contract.ts'
import { type Authentication, createAuthentication, type SftpCredentials } from './authenticate.ts'
import { explainConnect } from './explain.ts'
import type { HostKeys } from './host-keys.ts'
import { createSftpSession, type SftpSession } from './session.ts'

/** Accepted signature algorithms of host keys, best first. These are the defaults of ssh2. */
const HOST_KEYS: readonly ServerHostKeyAlgorithm[] = [
  'ssh-ed25519',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
  'rsa-sha2-512',
  'rsa-sha2-256',
  'ssh-rsa',
]

/** Time limit for logging in and opening the channel, in milliseconds. */
const LOGIN_MS = 20_000

export interface LoginOptions {
  readonly host: string
  readonly port: number
  readonly username: string
  readonly password?: string | undefined
  readonly privateKey?: string | undefined
  readonly privateKeyFile?: string | undefined
  readonly passphrase?: string | undefined
  readonly agent?: string | undefined
}

interface ConnectDeps {
  /** Name of the server in messages. */
  readonly server: string
  readonly hostKeys: HostKeys
  readonly dial: Context['dial']
  readonly onLost: () => void
}

/**
 * Connects, logs in and opens an SFTP channel.
 *
 * @param signal ends the session at any stage
 * @throws Problem
 */
export async function connect(
  options: LoginOptions,
  { server, hostKeys, dial, onLost }: ConnectDeps,
  signal: AbortSignal,
): Promise<SftpSession> {
  const { default: ssh2 } = await importOptional('ssh2', () => import('ssh2'))
  const authentication = createAuthentication(await readCredentials(options, ssh2.utils.parseKey))
  const kinds = await hostKeys.kinds()
  signal.throwIfAborted()
  const { host, port } = options
  const socket = await dial({ host, port }, signal).catch((error: unknown) => {
    signal.throwIfAborted()
    throw error instanceof Problem ? error : explainConnect(error, server, authentication)
  })
  const client = new ssh2.Client()
  socket.once(
    'close',
    onAbort(signal, () => socket.destroy()),
  )
  const late = Object.assign(new Error('no response within the time limit'), { code: 'ETIMEDOUT' })
  const timer = setTimeout(() => socket.destroy(late), LOGIN_MS)
  const broken = waitForEnd(client)
  try {
    const login = { username: options.username, authentication, hostKeys, kinds }
    await Promise.race([logIn(client, socket, login), broken])
    const sftp = await Promise.race([openChannel(client, server), broken])
    return createSftpSession({ client, sftp, socket }, server, onLost)
  } catch (error) {
    socket.destroy()
    throw error instanceof Problem ? error : explainConnect(error, server, authentication)
  } finally {
    clearTimeout(timer)
  }
}

async function readCredentials(
  options: LoginOptions,
  parseKey: (text: string, passphrase?: string) => unknown,
): Promise<SftpCredentials> {
  const { username, password, agent, passphrase, privateKeyFile } = options
  const name = privateKeyFile === undefined ? 'privateKey' : 'privateKeyFile'
  let text = options.privateKey
  try {
    if (privateKeyFile !== undefined) text = decodeText(await readFile(privateKeyFile))
  } catch (error) {
    throw new Problem(`"${name}" can't be read (${systemCode(error)})`, { cause: error })
  }
  const parsed = text === undefined ? undefined : parseKey(text, passphrase)
  const fault = text === undefined ? undefined : findKeyFault(text, parsed, passphrase)
  if (fault !== undefined)
    throw new Problem(`"${name}" is not a usable private key`, { advice: fault, cause: parsed })
  return { username, password, agent, key: text === undefined ? undefined : { text, passphrase } }
}

/** Returns a sentence about a key that can't be used, or undefined. @param parsed what the library made of it, or its error */
function findKeyFault(text: string, parsed: unknown, passphrase: string | undefined): string | undefined {
  const fault = findTextFault(text)
  if (fault !== undefined || !(parsed instanceof Error)) return fault
  return passphrase === undefined
    ? 'Set "passphrase" if the private key is encrypted.'
    : 'Check "passphrase".'
}

/** Returns a sentence about a text that is not a usable private key, whatever the passphrase is, or undefined. */
export function findTextFault(text: string): string | undefined {
  if (/^\s*(?:(?:ssh|ecdsa|sk)-[\w@.-]+ AAAA|---- BEGIN SSH2 PUBLIC|-----BEGIN (?:\w+ )?PUBLIC)/.test(text))
    return 'It is the public key. Use the private key, whose file has the same name without ".pub".'
  if (/^-----BEGIN .*\\n/.test(text.trim()))
    return 'It contains "\\n" as two characters. Write line breaks instead, or use "privateKeyFile".'
  return /^\s*PuTTY-User-Key-File-(?![12]:)/.test(text)
    ? 'Its PuTTY format is newer than 2. Export it with PuTTYgen: Conversions, Export OpenSSH key.'
    : undefined
}

interface SftpLogin {
  readonly username: string
  readonly authentication: Authentication
  readonly hostKeys: Pick<HostKeys, 'judge' | 'trust'>
  /** Types of host keys that the server should use if it has them. */
  readonly kinds: readonly string[]
}

/** Rejects when the connection ends. Handles all errors, also late ones, because an error without a listener ends the process. */
function waitForEnd(client: Client): Promise<never> {
  const end = new Promise<never>((_, reject) => {
    client.on('error', error => {
      // Other methods may work if the agent does not.
      if (error.level !== 'agent') reject(error)
    })
    client.on('close', () => reject(new Error('the connection was closed')))
  })
  end.catch(() => {})
  return end
}

function logIn(
  client: Client,
  socket: Socket,
  { username, authentication, hostKeys, kinds }: SftpLogin,
): Promise<void> {
  return new Promise((resolve, reject) => {
    client.once('ready', resolve)
    client.connect({
      sock: socket,
      username,
      readyTimeout: 0,
      authHandler: offered => authentication.next(offered),
      algorithms: { serverHostKey: preferring(kinds) },
      hostVerifier: (key: Buffer, verify: (isTrusted: boolean) => void) => {
        const decide = async () => {
          const verdict = await hostKeys.judge(key)
          if (verdict instanceof Problem) throw verdict
          if (verdict === 'unknown') await hostKeys.trust(key)
        }
        decide().then(
          () => verify(true),
          error => {
            reject(error)
            verify(false)
          },
        )
      },
    })
  })
}

/** Returns the default algorithms with these types first. An RSA key has three algorithms (RFC 8332). */
function preferring(kinds: readonly string[]): ServerHostKeyAlgorithm[] {
  const ways = kinds.flatMap(kind =>
    kind === 'ssh-rsa' ? ['rsa-sha2-512', 'rsa-sha2-256', 'ssh-rsa'] : [kind],
  )
  const first = HOST_KEYS.filter(one => ways.includes(one))
  return [...first, ...HOST_KEYS.filter(one => !first.includes(one))]
}

function openChannel(client: Client, server: string): Promise<SFTPWrapper> {
  return new Promise((resolve, reject) => {
    client.sftp((cause, sftp) => {
      // The caller adds its listener later, and an error without a listener ends the process.
      if (!cause) return resolve(sftp.on('error', () => {}))
      reject(
        new Problem(`${server} accepted the login but does not offer SFTP: ${excerpt(cause.message)}`, {
          cause,
        }),
      )
    })
  })
}
