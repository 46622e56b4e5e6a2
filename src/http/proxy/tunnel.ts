import { type IncomingMessage, request } from 'node:http'
import { isIP, type Socket } from 'node:net'
import { messageOf } from '../../errors.ts'
import { hideSignatures } from '../../mask.ts'
import { Problem, type ProblemOptions } from '../../problem.ts'
import { connectionProblem, isTransientStatus } from '../network.ts'
import { loginHeaders, type ProxyServer } from './address.ts'
import type { Endpoint } from './no-proxy.ts'

/** Failure of a proxy that can't be reached or rejects a request. */
export class ProxyFailure extends Problem {}

function failureOf({ label }: ProxyServer, what: string, options?: ProblemOptions): ProxyFailure {
  return new ProxyFailure(`the proxy "${label}" ${what}`, options)
}

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

const showEndpoint = ({ host, port }: Endpoint) => `${isIP(host) === 6 ? `[${host}]` : host}:${port}`

function connectByHttp(socket: Socket, proxy: ProxyServer, target: Endpoint): Promise<void> {
  const path = showEndpoint(target)
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
export function ownRefusal(
  proxy: ProxyServer,
  server: string,
  response: IncomingMessage,
): ProxyFailure | undefined {
  const { statusCode = 0, headers } = response
  const isMarked =
    headers['x-squid-error'] !== undefined ||
    String(headers['proxy-status'] ?? '').includes('error=') ||
    String(headers['server'] ?? '').startsWith('tinyproxy')
  const isOwn = statusCode === 407 || (statusCode >= 400 && isMarked)
  return isOwn ? refusalOf(proxy, server, response) : undefined
}

/** Maximum length of a proxy's reason phrase, in characters. */
const LONGEST_PHRASE = 80

const CHECK_URL = { advice: 'Check the URL of the proxy.' }

/** @param server host and port that the proxy was asked for */
function refusalOf(
  proxy: ProxyServer,
  server: string,
  { statusCode: status = 0, statusMessage = '', headers }: IncomingMessage,
): ProxyFailure {
  const phrase = hideSignatures(statusMessage.replace(/[^\x20-\x7e]/g, ' ')).slice(0, LONGEST_PHRASE)
  const reason = `(${`${status} ${phrase}`.trim()})`
  if (status !== 407)
    return failureOf(proxy, `${status >= 500 ? COULD_NOT : REFUSES} ${server} ${reason}`, {
      retryable: isTransientStatus(status),
    })
  const isBasic = /\bbasic\b/i.test([headers['proxy-authenticate'] ?? 'Basic'].flat().join())
  const what = proxy.login ? WRONG_LOGIN : NO_LOGIN
  return failureOf(proxy, `${isBasic ? what : 'does not support Basic authentication'} ${reason}`, CHECK_URL)
}

const REFUSES = 'refuses to connect to'
const COULD_NOT = 'could not connect to'
const WRONG_LOGIN = 'rejected the user name or password'
const NO_LOGIN = 'requires a user name and a password'

/** The library's messages about rejected logins, and ours. */
const REFUSALS: readonly [pattern: RegExp, what: string][] = [
  [/Authentication failed/, WRONG_LOGIN],
  [/no accepted authentication/, NO_LOGIN],
  [/initial handshake|final handshake/, 'is not a SOCKS5 proxy'],
]

/** Maximum length of hostnames, user names and passwords, in bytes (RFC 1928, 5; RFC 1929, 2). Longer ones crash the library. */
const LONGEST_TEXT = 255

async function connectBySocks(socket: Socket, server: ProxyServer, destination: Endpoint): Promise<void> {
  const { login, host, port } = server
  const texts = [destination.host, login?.username ?? '', login?.password ?? '']
  if (texts.some(text => Buffer.byteLength(text) > LONGEST_TEXT))
    throw failureOf(server, `supports no hostname, user name and password of more than ${LONGEST_TEXT} bytes`)
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
    if (known) throw failureOf(server, known, { ...CHECK_URL, cause })
    const [, code] = /rejected connection - (\w+)/.exec(message) ?? []
    if (code === undefined) throw broken ?? Object.assign(new Error(message), { code: 'ECONNRESET' })
    const isForbidden = code === 'NotAllowed'
    const what = `${isForbidden ? REFUSES : COULD_NOT} ${showEndpoint(destination)} (${code})`
    throw failureOf(server, what, { cause, retryable: !isForbidden })
  }
}
