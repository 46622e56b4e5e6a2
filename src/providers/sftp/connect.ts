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

/** A server that does not respond for 3 intervals is lost, so that the next put opens another connection. */
const KEEPALIVE_MS = 10_000

/** How a destination reaches its server. */
export interface SftpServer extends Credentials, Pick<Context, 'dial'> {
  readonly host: string
  readonly port: number
  /** Name of the server in messages. */
  readonly server: string
}

/**
 * Connects, logs in and opens an SFTP channel.
 *
 * @param signal ends the session at any stage
 * @throws Problem
 */
export async function connect(
  { host, port, server, dial, ...login }: SftpServer,
  hostKeys: Pick<HostKeys, 'kinds' | 'judge' | 'trust'>,
  signal: AbortSignal,
): Promise<SftpSession> {
  const { default: ssh2 } = await importOptional('ssh2', () => import('ssh2'))
  const authentication = createAuthentication(login, await readKey(login, ssh2.utils.parseKey))
  const kinds = await hostKeys.kinds()
  const explain = (error: unknown) => {
    signal.throwIfAborted()
    throw explainConnect(error, server, authentication)
  }
  const socket = await dial({ host, port }, signal).catch(explain)
  socket.once(
    'close',
    onAbort(signal, () => socket.destroy()),
  )
  const timer = setTimeout(() => socket.destroy(timeoutError()), LOGIN_MS)
  const client = new ssh2.Client()
  const broken = waitForEnd(client)
  const config: ConnectConfig = {
    sock: socket,
    username: login.username,
    readyTimeout: 0,
    keepaliveInterval: KEEPALIVE_MS,
    authHandler: offered => authentication.next(offered),
    algorithms: { serverHostKey: preferring(kinds) },
  }
  try {
    await Promise.race([logIn(client, config, hostKeys), broken])
    const sftp = await Promise.race([openChannel(client, server), broken])
    return createSftpSession(client, sftp, socket, server)
  } catch (error) {
    socket.destroy()
    return explain(error)
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

function logIn(
  client: Client,
  config: ConnectConfig,
  { judge, trust }: Pick<HostKeys, 'judge' | 'trust'>,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const verify = async (key: Buffer, decide: (isTrusted: boolean) => void) => {
      try {
        if ((await judge(key)) === 'unknown') await trust(key)
        decide(true)
      } catch (error) {
        reject(error)
        decide(false)
      }
    }
    client.once('ready', resolve)
    client.connect({
      ...config,
      hostVerifier: (key: Buffer, decide: (isTrusted: boolean) => void) => void verify(key, decide),
    })
  })
}

/** Returns the default algorithms with these types first. An RSA key has three algorithms (RFC 8332). */
function preferring(kinds: readonly string[]): ServerHostKeyAlgorithm[] {
  const rank = (one: string) => Number(!kinds.includes(one.startsWith('rsa-') ? 'ssh-rsa' : one))
  return [...HOST_KEYS].sort((a, b) => rank(a) - rank(b))
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
