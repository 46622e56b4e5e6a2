import type { Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls, TLSSocket } from 'node:tls'
import type { Client } from 'basic-ftp'
import { orAborted } from '../../flow/cancellation.ts'
import { beginTimeLimit } from '../../flow/time-limit.ts'
import { timeoutError } from '../../http/network.ts'
import { Problem } from '../../problem.ts'
import type { Context } from '../contract.ts'
import { responseCode } from '../shared/file-tree.ts'

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

/** A connection that runs one command at a time. */
export interface FtpConnection {
  readonly client: Client
  /** Absolute path at which relative paths start, so that nothing depends on the working directory of the connection. */
  home: string
  /** Why the last data connection broke. It is the cause of what the server says of it. */
  brokenData?: Error | undefined
}

/**
 * Connects and logs in.
 *
 * @throws what `explain` returns, or the reason of `signal` when it is aborted
 */
export async function connect(
  options: LoginOptions,
  { dial, isProxied, tlsOptions }: Pick<Context, 'dial' | 'isProxied' | 'tlsOptions'>,
  explain: (error: unknown) => unknown,
  signal: AbortSignal,
): Promise<FtpConnection> {
  const { Client } = await import('basic-ftp')
  const { host, secure, directory } = options
  const port = options.port ?? (secure === 'implicit' ? 990 : 21)
  const connection: FtpConnection = { client: new Client(IDLE_MS), home: '/' }
  const { client } = connection
  const limit = beginTimeLimit(LOGIN_MS, signal, timeoutError)
  try {
    const tls = secure === 'none' ? {} : { ...(await tlsOptions()), host }
    const socket = await dial({ host, port }, limit.signal, secure === 'implicit' ? secure : undefined)
    // A hostname may have the IP addresses of several machines. A proxy gets the hostname.
    const machine = isProxied({ host, port }) ? host : (socket.remoteAddress ?? host)
    const ended = new AbortController()
    socket.once('close', () => ended.abort(new Error('the connection was closed')))
    client.prepareTransfer = ftp => openData(ftp, port => dial({ host: machine, port }, ended.signal))
    hearOut(connection)
    await orAborted(logIn(client, options, socket, tls), limit.signal)
    if (!directory.startsWith('/'))
      connection.home = (await orAborted(client.pwd(), limit.signal)).replaceAll('""', '"')
    return connection
  } catch (error) {
    client.close()
    signal.throwIfAborted()
    throw explain(error)
  } finally {
    limit.end()
  }
}

/**
 * Keeps the control connection open when a data connection breaks, unlike basic-ftp: a server that rejects a file first
 * closes the data connection, and sends the reason over the control connection a moment later.
 */
function hearOut(connection: FtpConnection): void {
  const { ftp } = connection.client
  const close = ftp.closeWithError.bind(ftp)
  ftp.closeWithError = error => {
    if (!/^(?!Timeout).*\(data socket\)$/s.test(error.message)) close(error)
    // The first one has the code of the system.
    else connection.brokenData ??= error
  }
}

/** @param tls options of TLS on the control connection, if it begins later, and on data connections */
async function logIn(
  client: Client,
  { secure, username, password }: LoginOptions,
  socket: Socket,
  tls: ConnectionOptions,
): Promise<void> {
  client.ftp.socket = socket
  client.ftp.tlsOptions = tls // setting the socket resets them
  await client.ftp.handle(undefined, (greeting, task) =>
    greeting instanceof Error ? task.reject(greeting) : task.resolve(greeting),
  )
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

/**
 * Opens a passive data connection to the machine of the control connection. Servers behind NAT report another IP address,
 * and a foreign one may be an attack (FTP bounce).
 */
async function openData(ftp: Client['ftp'], dial: (port: number) => Promise<Socket>) {
  const reply = await ftp.request('EPSV').catch(() => ftp.request('PASV'))
  const [, extended] = /\(\|\|\|(\d{1,5})\|\)/.exec(reply.message) ?? []
  const [, high, low] = /\b(?:\d{1,3},){4}(\d{1,3}),(\d{1,3})\b/.exec(reply.message) ?? []
  const port = extended === undefined ? Number(high) * 256 + Number(low) : Number(extended)
  if (!(port > 0 && port < 65_536))
    throw new Problem('the server does not offer passive mode', {
      advice: 'Allow passive mode there: active mode is not supported.',
    })
  const socket = await dial(port)
  const control = ftp.socket
  // Some servers require the TLS session of the control connection.
  const session = ftp.tlsSessionStore ?? (control instanceof TLSSocket ? control.getSession() : undefined)
  ftp.dataSocket =
    control instanceof TLSSocket
      ? connectTls({ ...ftp.tlsOptions, socket, ...(session && { session }) })
      : socket
  return reply
}
