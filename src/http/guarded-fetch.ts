import type { Readable } from 'node:stream'
import type { Response } from 'node-fetch'
import { UploadError } from '../errors.ts'
import { type AddressScope, allowAddresses, isAt } from './addresses.ts'
import { createAgent, dial, ForbiddenAddress, type Lookup } from './dial.ts'
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
  name: 'Check the URL.',
  broken: 'Try again.',
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
  lookup?: Lookup | undefined
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
  const fail = (name: string, what: string) =>
    new UploadError('source_failed', `${name} redirects ${what}. Use the final URL instead.`)
  let target = url
  let authorization = basicAuthorization(url)
  let { addresses } = options
  for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects++) {
    if (privateHosts && !isAt(privateHosts, target)) addresses = 'public'
    const name = describeHop(url, target)
    const { response, isPublic } = await get(target, name, authorization, { ...options, addresses })
    if (addresses === 'private' && isPublic) addresses = 'public'
    if (!REDIRECTS.has(response.status)) return response
    discard(response)
    const next = readLocation(response, target)
    if (!next) throw fail(name, 'to an invalid URL')
    if (next.origin !== target.origin || next.username || next.password)
      authorization = basicAuthorization(next)
    target = next
  }
  throw fail(quoteUrl(url), `more than ${MOST_REDIRECTS} times`)
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
  const isExplained = cause instanceof UploadError
  const message = isExplained
    ? `${what}: ${cause.message}`
    : connectionProblem(cause, what, HOST_ADVICE).message
  return new UploadError('source_failed', message, { cause })
}

/** One request, no redirect followed. `isPublic`: whether the host has public IP addresses. */
async function get(
  target: URL,
  name: string,
  authorization: string | undefined,
  { addresses, signal, lookup, outgoing = DIRECT }: GuardedFetchOptions,
): Promise<{ response: Response; isPublic: boolean }> {
  const { protocol } = target
  const forbid = (why: string, cause?: unknown) =>
    new UploadError('source_forbidden', `${name} was not fetched: ${why}`, { cause })
  if (protocol !== 'http:' && protocol !== 'https:') throw forbid('only http and https URLs are allowed.')
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
    const proxy = outgoing.proxyFor(targetOf(target))
    const trust = proxy && (await readTrust({ 'network.caFile': outgoing.caFile }))
    const tls = protocol === 'https:' ? {} : undefined
    const agent = createAgent(protocol, endpoint =>
      dial(endpoint, { signal, allow, lookup, proxy, trust, tls }).catch(error => {
        failure = error
        throw error
      }),
    )
    const headers = {
      Accept: 'image/*,*/*;q=0.8',
      'User-Agent': 'upload-server',
      ...(authorization && { Authorization: authorization }),
    }
    // node-fetch rejects a URL with credentials.
    const plain = Object.assign(new URL(target), { username: '', password: '' })
    return { response: await fetch(plain, { agent, headers, redirect: 'manual', signal }), isPublic }
  } catch (cause) {
    signal.throwIfAborted()
    if (failure instanceof ForbiddenAddress)
      throw forbid(`its IP address is not allowed. ${ADVICE[addresses]}`, cause)
    throw explainHost(failure ?? cause, `${name} could not be fetched`)
  }
}

/** Returns the target of a redirect, or undefined if it has none. */
function readLocation(response: Response, base: URL): URL | undefined {
  const location = response.headers.get('location')
  if (location === null) return undefined
  const utf8 = Buffer.from(location, 'latin1').toString() // node reads the bytes of a header as latin1
  return URL.canParse(utf8, base.href) ? new URL(utf8, base) : undefined
}

/** Quotes host, port and path of a URL, without scheme, credentials and query. The path can't contain a URL. */
function quoteUrl({ protocol, host, pathname }: URL): string {
  const full = `${host || protocol}${pathname === '/' ? '' : pathname}`.replace(/\/{2,}/g, '/')
  return `"${full.length > 120 ? `${full.slice(0, 60)}…${full.slice(-50)}` : full}"`
}
