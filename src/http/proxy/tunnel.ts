import { type IncomingMessage, request } from 'node:http'
import { isIP, type Socket } from 'node:net'
import { messageOf } from '../../errors.ts'
import { hideSignatures } from '../../mask.ts'
import { Problem } from '../../problem.ts'
import { connectionProblem, isTransientStatus } from '../network.ts'
import { loginHeaders, type ProxyServer } from './address.ts'
import type { Endpoint } from './no-proxy.ts'

/** Failure of a proxy that can't be reached or rejects a request. */
export class ProxyFailure extends Problem {}

/** Explains why a connection to a proxy failed. Returns a failure that is explained already. */
export function explainProxy({ label }: ProxyServer, error: unknown): Problem {
  if (error instanceof Problem) return error
  const { why, advice, retryable } = connectionProblem(error, `the proxy "${label}" can't be used`, {
    certificate: 'Add its CA certificate with network.caFile.',
    tls: 'Use http instead of https if the proxy does not use TLS.',
  })
  return new ProxyFailure(why, { advice, retryable, cause: error })
}

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

/**
 * Returns the failure if a response comes from the proxy itself instead of from the server, as far as that can be detected:
 * servers never return 407, and other responses have the headers of RFC 9209, Squid or tinyproxy.
 */
export function ownRefusal(proxy: ProxyServer, response: IncomingMessage): ProxyFailure | undefined {
  const { statusCode = 0, headers } = response
  const isMarked =
    headers['x-squid-error'] !== undefined ||
    String(headers['proxy-status'] ?? '').includes('error=') ||
    String(headers['server'] ?? '').startsWith('tinyproxy')
  return statusCode === 407 || (statusCode >= 400 && isMarked)
    ? refusalOf(proxy, 'this', response)
    : undefined
}

/** Maximum length of a proxy's reason phrase, in characters. */
const LONGEST_PHRASE = 80

/** @param wanted what was asked of the proxy, such as `example.com:443` */
function refusalOf(
  { label, login }: ProxyServer,
  wanted: string,
  { statusCode: status = 0, statusMessage = '', headers }: IncomingMessage,
): ProxyFailure {
  const phrase = hideSignatures(statusMessage.replace(/[^\x20-\x7e]/g, ' ')).slice(0, LONGEST_PHRASE)
  const fail = (what: string, advice?: string) =>
    new ProxyFailure(`the proxy "${label}" ${what} (${`${status} ${phrase}`.trim()})`, {
      advice,
      retryable: isTransientStatus(status),
    })
  if (status !== 407) return fail(`${status >= 500 ? 'could not forward' : 'refuses to forward'} ${wanted}`)
  if (!/\bbasic\b/i.test([headers['proxy-authenticate'] ?? 'Basic'].flat().join()))
    return fail('offers no supported authentication scheme', 'Allow Basic there.')
  return fail(login ? 'rejected the user name or password' : 'requires a user name and a password', CHECK_URL)
}

const CHECK_URL = 'Check the URL of the proxy.'

/** Maximum length of hostnames, user names and passwords, in bytes (RFC 1928, 5; RFC 1929, 2). Longer ones crash the library. */
const LONGEST_TEXT = 255

/** The library's messages about rejected logins, and ours. */
const REFUSALS: readonly [pattern: RegExp, what: string][] = [
  [/Authentication failed/, 'rejected the user name or password'],
  [/no accepted authentication/, 'requires a user name and a password'],
  [/initial handshake|final handshake/, 'is not a SOCKS5 proxy'],
]

async function connectBySocks(socket: Socket, server: ProxyServer, destination: Endpoint): Promise<void> {
  const { label, login, host, port } = server
  const texts = [destination.host, login?.username ?? '', login?.password ?? '']
  if (texts.some(text => Buffer.byteLength(text) > LONGEST_TEXT))
    throw new ProxyFailure(
      `the proxy "${label}" does not support hostnames, user names and passwords of more than ${LONGEST_TEXT} bytes`,
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
    if (known) throw new ProxyFailure(`the proxy "${label}" ${known}`, { advice: CHECK_URL, cause })
    const [, code] = /rejected connection - (\w+)/.exec(message) ?? []
    if (code === undefined) throw broken ?? Object.assign(new Error(message), { code: 'ECONNRESET' })
    const isForbidden = code === 'NotAllowed'
    const what = isForbidden ? 'refuses to connect to' : 'could not connect to'
    const where = `${destination.host}, port ${destination.port}`
    const why = `the proxy "${label}" ${what} ${where} (${code})`
    throw new ProxyFailure(why, { cause, retryable: !isForbidden })
  }
}
