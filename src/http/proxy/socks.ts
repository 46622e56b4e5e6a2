import type { Socket } from 'node:net'
import { SocksClient } from 'socks'
import { messageOf } from '../../errors.ts'
import type { ProxyServer } from './address.ts'
import { ProxyFailure } from './failure.ts'
import type { Endpoint } from './no-proxy.ts'

/** Maximum length of a hostname, in bytes (RFC 1928, section 5). A longer one would crash the library. */
const LONGEST_NAME = 255

/** The library's messages about rejected logins, and ours. */
const REFUSALS: readonly [pattern: RegExp, what: string][] = [
  [/Authentication failed/, 'rejected the user name or password'],
  [/no accepted authentication/, 'requires a user name and a password'],
  [/initial handshake|final handshake/, 'is not a SOCKS5 proxy'],
]

/** Makes the SOCKS5 proxy at the other end of a socket connect to a server. @throws ProxyFailure, or the socket's error */
export async function connectBySocks(
  socket: Socket,
  { label, login, host, port }: ProxyServer,
  target: Endpoint,
): Promise<void> {
  const where = `${target.host}, port ${target.port}`
  if (Buffer.byteLength(target.host) > LONGEST_NAME)
    throw new ProxyFailure(
      `the proxy "${label}" does not support hostnames of more than ${LONGEST_NAME} bytes`,
    )
  // The library reports socket errors as text only.
  let broken: Error | undefined
  socket.prependOnceListener('error', error => (broken = error))
  try {
    const proxy = {
      host,
      port,
      type: 5,
      ...(login && { userId: login.username, password: login.password }),
    } as const
    await SocksClient.createConnection({
      proxy,
      command: 'connect',
      destination: target,
      existing_socket: socket,
    })
  } catch (error) {
    const message = messageOf(error)
    const known = REFUSALS.find(([pattern]) => pattern.test(message))?.[1]
    if (known)
      throw new ProxyFailure(`the proxy "${label}" ${known}`, {
        advice: 'Check the URL of the proxy.',
        cause: error,
      })
    const [, code] = /rejected connection - (\w+)/.exec(message) ?? []
    if (code === undefined) throw broken ?? Object.assign(new Error(message), { code: 'ECONNRESET' })
    const isForbidden = code === 'NotAllowed'
    const what = isForbidden ? 'refuses to connect to' : 'could not connect to'
    throw new ProxyFailure(`the proxy "${label}" ${what} ${where} (${code})`, {
      cause: error,
      retryable: !isForbidden,
    })
  }
}
