import type { Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import type { Client } from 'basic-ftp'
import { orAborted } from '../../flow/cancellation.ts'
import { beginTimeLimit } from '../../flow/time-limit.ts'
import { timeoutError } from '../../http/network.ts'
import { Problem } from '../../problem.ts'
import type { Context } from '../contract.ts'
import { responseCode } from '../shared/file-tree.ts'
import { prepareTransfer } from './data-connection.ts'
import type { Explain } from './explain.ts'
import { brokenData, type FtpConnection } from './files.ts'

/** Time limit for logging in, in milliseconds. */
const LOGIN_MS = 20_000
/** Idle timeout of a transfer, in milliseconds. */
const IDLE_MS = 30_000

export interface LoginOptions {
  readonly host: string
  readonly port?: number | undefined
  readonly secure: 'explicit' | 'implicit' | 'none'
  readonly username: string
  readonly password: string
  readonly directory: string
}

export interface ConnectDeps extends Pick<Context, 'dial' | 'isProxied' | 'tlsOptions'> {
  readonly explain: Explain
}

/**
 * Connects and logs in.
 *
 * @throws Problem
 * @throws the reason of `signal` when it is aborted
 */
export async function connect(
  options: LoginOptions,
  { explain, dial, isProxied, tlsOptions }: ConnectDeps,
  signal: AbortSignal,
): Promise<FtpConnection> {
  const { Client } = await import('basic-ftp')
  const { host, secure } = options
  const port = options.port ?? (secure === 'implicit' ? 990 : 21)
  const client = hearOut(new Client(IDLE_MS))
  try {
    const tls = secure === 'none' ? {} : { ...(await tlsOptions()), host }
    const socket = await dial({ host, port }, signal, secure === 'implicit' ? secure : undefined)
    // A hostname may have the IP addresses of several machines. A proxy gets the hostname.
    const machine = isProxied({ host, port }) ? host : (socket.remoteAddress ?? host)
    client.prepareTransfer = prepareTransfer((port, signal) => dial({ host: machine, port }, signal))
    const limit = beginTimeLimit(LOGIN_MS, signal, timeoutError)
    try {
      await orAborted(greet(client, socket, tls), limit.signal)
      await orAborted(logIn(client, options, tls), limit.signal)
      return { client, home: await orAborted(findHome(client, options.directory), limit.signal) }
    } finally {
      limit.end()
    }
  } catch (error) {
    client.close()
    signal.throwIfAborted()
    throw explain(error)
  }
}

/**
 * Keeps the control connection open when a data connection breaks, unlike basic-ftp: a server that rejects a file first
 * closes the data connection, and sends the reason over the control connection a moment later.
 */
function hearOut(client: Client): Client {
  const { ftp } = client
  const close = ftp.closeWithError.bind(ftp)
  ftp.closeWithError = error => {
    if (!/^(?!Timeout).*\(data socket\)$/s.test(error.message)) close(error)
    // The first one has the code of the system.
    else if (!brokenData.has(client)) brokenData.set(client, error)
  }
  return client
}

/** Gives a client its control connection, and waits for the greeting. @param tls options of its data connections */
async function greet({ ftp }: Client, socket: Socket, tls: ConnectionOptions): Promise<void> {
  ftp.socket = socket
  ftp.tlsOptions = tls // setting the socket resets them
  await ftp.handle(undefined, (reply, task) => {
    if (reply instanceof Error) task.reject(reply)
    else task.resolve(reply)
  })
}

async function logIn(
  client: Client,
  { secure, username, password }: LoginOptions,
  tls: ConnectionOptions,
): Promise<void> {
  if (secure === 'explicit') {
    await client.useTLS(tls).catch(error => {
      if (responseCode(error) === undefined) throw error
      throw new Problem('the server does not offer TLS', {
        advice: 'Ask its operator for FTPS. With "secure": "none", the password is sent in plain text.',
        cause: error,
      })
    })
  }
  // For a user name and file names outside ASCII (RFC 2640). Some servers support it only after the login.
  await client.sendIgnoringError('OPTS UTF8 ON')
  await client.login(username, password)
  await client.useDefaultSettings()
}

async function findHome(client: Client, directory: string): Promise<string> {
  return directory.startsWith('/') ? '/' : (await client.pwd()).replaceAll('""', '"')
}
