import { request } from 'node:http'
import { isIP, type Socket } from 'node:net'
import { messageOf } from '../../errors.ts'
import { loginHeaders, type ProxyServer } from './address.ts'
import { ProxyFailure, refusalOf } from './failure.ts'
import type { Endpoint } from './no-proxy.ts'

/**
 * Makes the proxy at the other end of a socket connect to a server, by CONNECT or SOCKS5.
 *
 * @throws ProxyFailure, or the socket's error
 */
export function openTunnel(socket: Socket, proxy: ProxyServer, target: Endpoint): Promise<void> {
  return proxy.protocol.startsWith('socks')
    ? connectBySocks(socket, proxy, target)
    : connectByHttp(socket, proxy, target)
}

function connectByHttp(socket: Socket, proxy: ProxyServer, { host, port }: Endpoint): Promise<void> {
  const path = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`
  const headers = { host: path, ...loginHeaders(proxy) }
  return new Promise((resolve, reject) => {
    request({ method: 'CONNECT', path, headers, createConnection: () => socket })
      .on('error', reject)
      .on('connect', (response, _socket, head) => {
        const { statusCode = 0 } = response
        if (statusCode < 200 || statusCode > 299) return reject(refusalOf(proxy, path, response))
        if (head.length > 0) socket.unshift(head)
        resolve()
      })
      .end()
  })
}

/** Maximum length of a hostname, in bytes (RFC 1928, section 5). A longer one would crash the library. */
const LONGEST_NAME = 255

/** The library's messages about rejected logins, and ours. */
const REFUSALS: readonly [pattern: RegExp, what: string][] = [
  [/Authentication failed/, 'rejected the user name or password'],
  [/no accepted authentication/, 'requires a user name and a password'],
  [/initial handshake|final handshake/, 'is not a SOCKS5 proxy'],
]

async function connectBySocks(socket: Socket, server: ProxyServer, destination: Endpoint): Promise<void> {
  const { label, login, host, port } = server
  if (Buffer.byteLength(destination.host) > LONGEST_NAME)
    throw new ProxyFailure(
      `the proxy "${label}" does not support hostnames of more than ${LONGEST_NAME} bytes`,
    )
  const { SocksClient } = await import('socks')
  // The library reports socket errors as text only.
  let broken: Error | undefined
  socket.prependOnceListener('error', error => (broken = error))
  const user = login && { userId: login.username, password: login.password }
  const proxy = { host, port, type: 5, ...user } as const
  try {
    await SocksClient.createConnection({ proxy, command: 'connect', destination, existing_socket: socket })
  } catch (cause) {
    const message = messageOf(cause)
    const known = REFUSALS.find(([pattern]) => pattern.test(message))?.[1]
    const advice = 'Check the URL of the proxy.'
    if (known) throw new ProxyFailure(`the proxy "${label}" ${known}`, { advice, cause })
    const [, code] = /rejected connection - (\w+)/.exec(message) ?? []
    if (code === undefined) throw broken ?? Object.assign(new Error(message), { code: 'ECONNRESET' })
    const isForbidden = code === 'NotAllowed'
    const what = isForbidden ? 'refuses to connect to' : 'could not connect to'
    const where = `${destination.host}, port ${destination.port}`
    const why = `the proxy "${label}" ${what} ${where} (${code})`
    throw new ProxyFailure(why, { cause, retryable: !isForbidden })
  }
}
