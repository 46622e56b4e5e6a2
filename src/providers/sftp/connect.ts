import type { Client, ConnectConfig, ServerHostKeyAlgorithm, SFTPWrapper } from 'ssh2'
import { onAbort } from '../../flow/cancellation.ts'
import { excerpt } from '../../http/excerpt.ts'
import { timeoutError } from '../../http/network.ts'
import { importOptional } from '../../packages/optional.ts'
import { Problem } from '../../problem.ts'
import type { Context } from '../contract.ts'
import { type Credentials, createAuthentication, readKey } from './authenticate.ts'
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

interface ConnectDeps extends Pick<Context, 'dial'> {
  /** Name of the server in messages. */
  readonly server: string
  readonly hostKeys: HostKeys
  readonly onLost: () => void
}

/**
 * Connects, logs in and opens an SFTP channel.
 *
 * @param signal ends the session at any stage
 * @throws Problem
 */
export async function connect(
  { host, port, ...login }: Credentials & { readonly host: string; readonly port: number },
  { server, hostKeys, dial, onLost }: ConnectDeps,
  signal: AbortSignal,
): Promise<SftpSession> {
  const { default: ssh2 } = await importOptional('ssh2', () => import('ssh2'))
  const authentication = createAuthentication(login, await readKey(login, ssh2.utils.parseKey))
  const explain = (error: unknown) =>
    error instanceof Problem ? error : explainConnect(error, server, authentication)
  const kinds = await hostKeys.kinds()
  signal.throwIfAborted()
  const socket = await dial({ host, port }, signal).catch((error: unknown) => {
    signal.throwIfAborted()
    throw explain(error)
  })
  const client = new ssh2.Client()
  socket.once(
    'close',
    onAbort(signal, () => socket.destroy()),
  )
  const timer = setTimeout(() => socket.destroy(timeoutError()), LOGIN_MS)
  const broken = waitForEnd(client)
  try {
    const config: ConnectConfig = {
      sock: socket,
      username: login.username,
      readyTimeout: 0,
      authHandler: offered => authentication.next(offered),
      algorithms: { serverHostKey: preferring(kinds) },
    }
    await Promise.race([logIn(client, config, hostKeys), broken])
    const sftp = await Promise.race([openChannel(client, server), broken])
    return createSftpSession({ client, sftp, socket }, server, onLost)
  } catch (error) {
    socket.destroy()
    throw explain(error)
  } finally {
    clearTimeout(timer)
  }
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

function logIn(client: Client, config: ConnectConfig, hostKeys: HostKeys): Promise<void> {
  return new Promise((resolve, reject) => {
    const decide = async (key: Buffer) => {
      const verdict = await hostKeys.judge(key)
      if (verdict instanceof Problem) throw verdict
      if (verdict === 'unknown') await hostKeys.trust(key)
    }
    client.once('ready', resolve)
    client.connect({
      ...config,
      hostVerifier: (key: Buffer, verify: (isTrusted: boolean) => void) => {
        decide(key).then(
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
  const isKnown = (one: string) => kinds.includes(one.startsWith('rsa-') ? 'ssh-rsa' : one)
  return [...HOST_KEYS.filter(isKnown), ...HOST_KEYS.filter(one => !isKnown(one))]
}

function openChannel(client: Client, server: string): Promise<SFTPWrapper> {
  return new Promise((resolve, reject) => {
    client.sftp((cause, sftp) => {
      // The caller adds its listener later, and an error without a listener ends the process.
      if (!cause) return resolve(sftp.on('error', () => {}))
      const why = `${server} accepted the login but does not offer SFTP: ${excerpt(cause.message)}`
      reject(new Problem(why, { cause }))
    })
  })
}
