import type { Socket } from 'node:net'
import { SocksClient } from 'socks'
import type { ProxyServer } from './address.ts'
import { ProxyFailure } from './failure.ts'
import type { Endpoint } from './no-proxy.ts'

/** Longest name that can be said, in bytes (RFC 1928, section 5). The library would not survive a longer one. */
const LONGEST_NAME = 255

/** Of a handshake; who calls gives it up before. */
const LONGEST_MS = 60_000

/** How the library says that nobody is let in, and how we do. */
const REFUSALS: readonly [pattern: RegExp, what: string][] = [
  [/Authentication failed/, 'refuses the user name or the password'],
  [/no accepted authentication/, 'wants a user name and a password'],
  [/initial handshake|final handshake/, 'speaks no SOCKS5'],
]

/** Has a SOCKS5 proxy, at the other end of a socket, connect to a server. @throws ProxyFailure, or what the socket says */
export async function connectBySocks(
  socket: Socket,
  { label, login, host, port }: ProxyServer,
  target: Endpoint,
): Promise<Socket> {
  const where = `${target.host}, port ${target.port}`
  if (Buffer.byteLength(target.host) > LONGEST_NAME)
    throw new ProxyFailure(`the proxy "${label}" can't be told a name of more than ${LONGEST_NAME} bytes`)
  // The library gives the errors of a socket as text only.
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
      ...{ proxy, command: 'connect', destination: target },
      ...{ existing_socket: socket, timeout: LONGEST_MS },
    })
    return socket
  } catch (error) {
    const { message } = error as Error
    const known = REFUSALS.find(([pattern]) => pattern.test(message))?.[1]
    if (known) throw new ProxyFailure(`the proxy "${label}" ${known}`, { cause: error })
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
