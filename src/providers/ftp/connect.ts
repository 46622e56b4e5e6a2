import type { ConnectionOptions } from 'node:tls'
import type { Client } from 'basic-ftp'
import { UploadError } from '../../errors.ts'
import { orAborted } from '../../flow/cancellation.ts'
import { beginTimeLimit } from '../../flow/time-limit.ts'
import { dialThroughProxy } from '../../http/proxy/dial.ts'
import { explainProxy } from '../../http/proxy/failure.ts'
import type { Outgoing } from '../../http/proxy/outgoing.ts'
import { readTrust } from '../../http/trust.ts'
import { cleanFolder, joinRemote } from '../shared/remote-path.ts'
import { type Explain, replyCode } from './explain.ts'
import { brokenData } from './files.ts'
import { connectOver, type DialPort, prepareTransfer } from './through-proxy.ts'

/** Time limit for connecting and logging in, and idle timeout of a transfer, in milliseconds. */
const TIMEOUT_MS = 30_000

export interface LoginOptions {
  readonly host: string
  readonly port?: number | undefined
  readonly secure: 'explicit' | 'implicit' | 'none'
  readonly username: string
  readonly password: string
  readonly directory: string
  readonly caFile?: string | undefined
  readonly insecureTls: boolean
}

export interface ConnectDeps {
  /** Name of the server in messages. */
  readonly server: string
  readonly explain: Explain
  readonly outgoing: Outgoing
}

/** A connection that runs one command at a time. */
export interface FtpConnection {
  readonly client: Client
  /** Absolute path of the destination's folder, so that nothing depends on the working directory of the connection. */
  readonly directory: string
}

/**
 * Connects and logs in.
 *
 * @throws UploadError `delivery_failed`
 * @throws the reason of `signal` when it is aborted
 */
export async function connect(
  options: LoginOptions,
  { server, explain, outgoing }: ConnectDeps,
  signal: AbortSignal,
): Promise<FtpConnection> {
  const { Client } = await import('basic-ftp')
  const secureOptions = await readTlsOptions(options, outgoing)
  const dial = (port: number, signal: AbortSignal) =>
    dialThroughProxy(outgoing, { host: options.host, port }, signal).catch(error => {
      throw explainProxy(error, server)
    })
  const client = hearOut(new Client(TIMEOUT_MS))
  const late = Object.assign(new Error('no response within the time limit'), { code: 'ETIMEDOUT' })
  const limit = beginTimeLimit(TIMEOUT_MS, signal, () => late)
  try {
    signal.throwIfAborted()
    const port = options.port ?? (options.secure === 'implicit' ? 990 : 21)
    await orAborted(greet(client, options, port, secureOptions, dial, signal), limit.signal)
    await orAborted(logIn(client, options, secureOptions), limit.signal)
    return { client, directory: await orAborted(findDirectory(client, options.directory), limit.signal) }
  } catch (error) {
    client.close()
    signal.throwIfAborted()
    throw explain(error, 'Logging in')
  } finally {
    limit.end()
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

async function greet(
  client: Client,
  { host, secure }: LoginOptions,
  port: number,
  secureOptions: ConnectionOptions,
  dial: (...to: Parameters<DialPort>) => Promise<Awaited<ReturnType<DialPort>> | undefined>,
  signal: AbortSignal,
): Promise<void> {
  const tls = { ...secureOptions, host }
  const socket = await dial(port, signal)
  if (socket) {
    // The cast is safe: a proxy that is used for the first connection is used for all of them.
    client.prepareTransfer = prepareTransfer(dial as DialPort)
    await connectOver(client, socket, secure === 'implicit' ? tls : undefined)
  } else if (secure === 'implicit') await client.connectImplicitTLS(host, port, tls)
  else await client.connect(host, port)
}

async function logIn(client: Client, options: LoginOptions, secureOptions: ConnectionOptions): Promise<void> {
  const { host, secure, username, password } = options
  if (secure === 'explicit') {
    await client.useTLS({ ...secureOptions, host }).catch(error => {
      if (replyCode(error) === undefined) throw error
      throw new UploadError(
        'delivery_failed',
        'The server does not offer TLS. Ask its operator for FTPS; with "secure": "none", the password is sent in plain text.',
        { cause: error },
      )
    })
  }
  // For a user name and file names outside ASCII (RFC 2640). Some servers support it only after the login.
  await client.sendIgnoringError('OPTS UTF8 ON')
  await client.login(username, password)
  await client.useDefaultSettings()
}

async function readTlsOptions(
  { caFile, insecureTls }: LoginOptions,
  outgoing: Outgoing,
): Promise<ConnectionOptions> {
  if (insecureTls) return { rejectUnauthorized: false }
  const secureContext = await readTrust({ 'network.caFile': outgoing.caFile, caFile })
  return secureContext ? { secureContext } : {}
}

async function findDirectory(client: Client, directory: string): Promise<string> {
  const folder = cleanFolder(directory)
  if (folder.startsWith('/')) return folder
  const home = (await client.pwd()).replaceAll('""', '"')
  return folder === '' ? home : joinRemote(home, folder)
}
