import type { LookupFunction } from 'node:net'
import type { Readable } from 'node:stream'
import type { Response } from 'node-fetch'
import { UploadError } from '../errors.ts'
import { type AddressScope, allowAddresses, isAt } from './addresses.ts'
import { createAgent, dial, ForbiddenAddress } from './dial.ts'
import { basicAuthorization } from './exchange.ts'
import { connectionProblem } from './network.ts'
import { DIRECT, type Outgoing, targetOf } from './proxy/outgoing.ts'
import { readTrust } from './trust.ts'

const MOST_REDIRECTS = 5
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

const UNLESS = 'unless sources.url.allowPrivate is set'
const ADVICE: Record<AddressScope, string> = {
  public: `Only public IP addresses of other machines are allowed, ${UNLESS}.`,
  private: `Only public, private and loopback IP addresses are allowed, ${UNLESS}.`,
  any: 'Use the IP address of a single host.',
}

/** What to do about failures of the host of a URL, which a client chose. */
const HOST_ADVICE = {
  ENOTFOUND: 'Check the URL.',
  EAI_AGAIN: 'Check DNS on the machine that fetches the URL.',
  ECONNRESET: 'Try again.',
  EPIPE: 'Try again.',
  ERR_STREAM_PREMATURE_CLOSE: 'Try again.',
  certificate: 'Check the certificate of the host.',
  tls: 'Check the certificate of the host.',
}

export interface GuardedFetchOptions {
  /** IP addresses that may be connected to, on every hop. */
  addresses: AddressScope
  /** The only hosts that may have private addresses, see `isAt`. Default: all that `addresses` allows. */
  privateHosts?: readonly string[] | undefined
  /** Aborts the request and the reading of the body. */
  signal: AbortSignal
  /** Resolves hostnames. Default: node:dns. */
  lookup?: LookupFunction | undefined
  /** Outbound proxies. Default: none. They get an IP address that was checked here. */
  outgoing?: Outgoing | undefined
}

/**
 * Sends a GET request and follows redirects, with SSRF protection: it checks the IP address that it connects to, not the text
 * of the URL. A public host can't redirect to a private one, because the client did not ask for it. Credentials in a URL are
 * sent only to its own origin.
 *
 * @throws UploadError `source_forbidden` or `source_failed`; the signal's reason once that is aborted
 */
export async function guardedFetch(url: URL, options: GuardedFetchOptions): Promise<Response> {
  const { privateHosts } = options
  let target = url
  let authorization = basicAuthorization(url)
  let { addresses } = options
  for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects++) {
    if (privateHosts && !isAt(privateHosts, target)) addresses = 'public'
    const { response, isPublic } = await get(target, describeHop(url, target), authorization, {
      ...options,
      addresses,
    })
    if (addresses === 'private' && isPublic) addresses = 'public'
    if (!REDIRECTS.has(response.status)) return response
    discard(response)
    const next = readLocation(response, target)
    if (!next) {
      const message = `${describeHop(url, target)} redirects to an invalid URL. Use the final URL instead.`
      throw new UploadError('source_failed', message)
    }
    if (next.origin !== target.origin || next.username || next.password)
      authorization = basicAuthorization(next)
    target = next
  }
  const message = `${quoteUrl(url)} redirects more than ${MOST_REDIRECTS} times. Use the final URL instead.`
  throw new UploadError('source_failed', message)
}

/** Closes the connection of a response whose body is not needed. */
export function discard(response: Response): void {
  const body = response.body as Readable | null // node-fetch types its Readable as NodeJS.ReadableStream
  body?.destroy()
}

/** Names a URL in a message, and by which one it was reached. */
export function describeHop(first: URL, target: URL): string {
  const [from, to] = [quoteUrl(first), quoteUrl(target)]
  return from === to ? to : `${to}, to which ${from} redirects,`
}

/** The error for a host that can't be reached, or whose response breaks off. @param what such as `"a.example/b" could not be read` */
export function explainHost(cause: unknown, what: string): UploadError {
  return new UploadError('source_failed', connectionProblem(cause, what, HOST_ADVICE).message, { cause })
}

/** One request, no redirect followed. `isPublic`: whether the host has public IP addresses. */
async function get(
  target: URL,
  name: string,
  authorization: string | undefined,
  { addresses, signal, lookup, outgoing = DIRECT }: GuardedFetchOptions,
): Promise<{ response: Response; isPublic: boolean }> {
  const { protocol } = target
  if (protocol !== 'http:' && protocol !== 'https:')
    throw new UploadError(
      'source_forbidden',
      `${name} was not fetched: only http and https URLs are allowed.`,
    )
  const headers: Record<string, string> = { Accept: 'image/*,*/*;q=0.8', 'User-Agent': 'upload-server' }
  if (authorization) headers['Authorization'] = authorization
  const { default: fetch } = await import('node-fetch')
  signal.throwIfAborted()
  const [isAllowed, isPublicAddress] = [allowAddresses(addresses), allowAddresses('public')]
  let isPublic = false
  const allow = (address: string) => {
    if (!isAllowed(address)) return false
    isPublic ||= isPublicAddress(address)
    return true
  }
  // node-fetch does not pass on the errors of its agents.
  let failure: unknown
  try {
    const isSecure = protocol === 'https:'
    const proxy = outgoing.proxyFor(targetOf(target))
    const trust = proxy && (await readTrust({ 'network.caFile': outgoing.caFile }))
    const agent = createAgent(isSecure, {}, endpoint =>
      dial(endpoint, { signal, allow, lookup, proxy, trust, ...(isSecure && { tls: {} }) }).catch(error => {
        failure = error
        throw error
      }),
    )
    const options = { agent, headers, redirect: 'manual', signal } as const
    return { response: await fetch(withoutCredentials(target), options), isPublic }
  } catch (cause) {
    signal.throwIfAborted()
    if (failure instanceof ForbiddenAddress) {
      const message = `${name} was not fetched: its IP address is not allowed. ${ADVICE[addresses]}`
      throw new UploadError('source_forbidden', message, { cause })
    }
    const what = `${name} could not be fetched`
    const known = [failure, cause].find(error => error instanceof UploadError)
    if (known) throw new UploadError('source_failed', `${what}: ${known.message}`, { cause })
    throw explainHost(failure ?? cause, what)
  }
}

/** Returns the target of a redirect, or undefined if it has none. */
function readLocation(response: Response, base: URL): URL | undefined {
  const location = response.headers.get('location')
  if (location === null) return undefined
  const utf8 = Buffer.from(location, 'latin1').toString() // node reads the bytes of a header as latin1
  return URL.canParse(utf8, base.href) ? new URL(utf8, base) : undefined
}

/** node-fetch refuses a URL with credentials. */
function withoutCredentials(url: URL): URL {
  const plain = new URL(url)
  plain.username = ''
  plain.password = ''
  return plain
}

/** Quotes host, port and path of a URL, without scheme, credentials and query. The path can't contain a URL. */
function quoteUrl({ protocol, host, pathname }: URL): string {
  const full = `${host || protocol}${pathname === '/' ? '' : pathname}`.replace(/\/{2,}/g, '/')
  return `"${full.length > 120 ? `${full.slice(0, 60)}…${full.slice(-50)}` : full}"`
}
