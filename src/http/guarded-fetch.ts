import type { LookupFunction } from 'node:net'
import type { Readable } from 'node:stream'
import type { Response } from 'node-fetch'
import { UploadError } from '../errors.ts'
import type { Reach } from './addresses.ts'
import { createGuardedAgent, type Dial, type Guard } from './guarded-agent.ts'
import { percentDecode } from './percent-decode.ts'
import { type Outgoing, targetOf } from './proxy/outgoing.ts'

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

const UNLESS = 'unless sources.url.allowPrivate is set'
const ADVICE: Record<Reach, string> = {
  public: `Only public addresses of other machines are fetched, ${UNLESS}.`,
  private: `Only public, private and loopback addresses are fetched, ${UNLESS}.`,
  any: 'Use the address of a single host.',
}

const FAILURES: readonly [code: RegExp, reason: string][] = [
  [/^ENOTFOUND$/, 'the host name does not exist; check the address'],
  [/^EAI_/, 'the host name could not be looked up; check the DNS of the machine that fetches it'],
  [/^ECONNREFUSED$/, 'nothing accepts connections at that port'],
  [
    /^ECONNRESET$|^EPIPE$|PREMATURE_CLOSE$/,
    'the connection was closed before the answer was complete; try again',
  ],
  [/^ETIMEDOUT$/, 'the host does not answer'],
  [/^E(HOST|NET)UNREACH$|^EADDRNOTAVAIL$/, 'there is no way from here to that host'],
  [
    /CERT|SIGNATURE|ERR_SSL|ERR_TLS|^EPROTO$/,
    'no trusted TLS connection; check the certificate of that host',
  ],
  [/^HPE_HEADER_OVERFLOW$/, 'the headers of the answer are too long'],
  [/^HPE_/, 'the answer is no valid HTTP'],
  [/^Z_|ZLIB|BROTLI|^ERR_?_ERROR_/, 'the answer could not be decompressed'],
]

export interface GuardedFetchOptions {
  /** Which addresses may be dialled, on every hop. */
  addresses: Reach
  /** Ends the request and the reading of the body. */
  signal: AbortSignal
  /** Default 5. */
  maxRedirects?: number
  /** How host names are looked up; default that of node:dns. */
  lookup?: LookupFunction | undefined
  /** Through which proxies; default: none. What they are asked for is an address that was checked here. */
  outgoing?: Outgoing | undefined
}

/**
 * GET of an http(s) URL, following redirects, that connects to allowed addresses only: the address that is dialled is
 * checked, not the text of the URL. Credentials in a URL go to its own origin alone.
 *
 * @throws UploadError `source_forbidden` or `source_failed`; the signal's reason once that is aborted
 */
export async function guardedFetch(url: URL, options: GuardedFetchOptions): Promise<Response> {
  const { maxRedirects = 5 } = options
  let target = url
  let authorization = basicAuthorization(url)
  for (let redirects = 0; redirects <= maxRedirects; redirects++) {
    const response = await get(target, describeHop(url, target), authorization, options)
    if (!REDIRECTS.has(response.status)) return response
    discard(response)
    const next = readLocation(response, target)
    if (!next) {
      const message = `${describeHop(url, target)} redirects to no valid address. Use the final address instead.`
      throw new UploadError('source_failed', message)
    }
    if (next.origin !== target.origin || next.username || next.password)
      authorization = basicAuthorization(next)
    target = next
  }
  const message = `${quoteUrl(url)} redirects more than ${maxRedirects} times. Use the final address instead.`
  throw new UploadError('source_failed', message)
}

/** Ends the connection of an answer whose body is not wanted. */
export function discard(response: Response): void {
  const body = response.body as Readable | null // node-fetch types it as less than it is
  body?.destroy()
}

/** Names a URL in a message, and by which one it was reached. */
export function describeHop(first: URL, target: URL): string {
  const [from, to] = [quoteUrl(first), quoteUrl(target)]
  return from === to ? to : `${to}, to which ${from} redirects,`
}

/** What went wrong with a connection, in words and with its code. */
export function describeFailure(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  const reason = FAILURES.find(([pattern]) => pattern.test(code))?.[1] ?? 'the connection failed'
  return code === '' ? reason : `${reason} (${code})`
}

/** One request, no redirect followed. */
async function get(
  target: URL,
  name: string,
  authorization: string | undefined,
  { addresses, signal, lookup, outgoing }: GuardedFetchOptions,
): Promise<Response> {
  const { protocol } = target
  if (protocol !== 'http:' && protocol !== 'https:')
    throw new UploadError('source_forbidden', `${name} is not fetched: only HTTP and HTTPS are.`)
  const headers: Record<string, string> = { Accept: 'image/*,*/*;q=0.8', 'User-Agent': 'upload-server' }
  if (authorization) headers['Authorization'] = authorization
  const guard: Guard = { addresses, refused: false }
  const { default: fetch } = await import('node-fetch')
  signal.throwIfAborted()
  try {
    const agent = createGuardedAgent(protocol, guard, lookup, await findRoute(target, outgoing, signal))
    return await fetch(withoutCredentials(target), { agent, headers, redirect: 'manual', signal })
  } catch (cause) {
    signal.throwIfAborted()
    if (guard.refused) {
      const message = `${name} lies at an address that is not fetched. ${ADVICE[addresses]}`
      throw new UploadError('source_forbidden', message, { cause })
    }
    const failure = guard.failure ?? (cause instanceof UploadError ? cause : undefined)
    const reason = failure?.message ?? describeFailure(cause)
    throw new UploadError('source_failed', `${name} could not be fetched: ${reason}.`, { cause })
  }
}

/** How a proxy is asked for an address; undefined when none is for it. */
async function findRoute(
  target: URL,
  outgoing: Outgoing | undefined,
  signal: AbortSignal,
): Promise<Dial | undefined> {
  const proxy = outgoing?.proxyFor(targetOf(target))
  if (!proxy) return undefined
  const [{ openTunnel }, { readTrust }] = await Promise.all([
    import('./proxy/tunnel.ts'),
    import('./trust.ts'),
  ])
  const secureContext = await readTrust({ 'network.caFile': outgoing?.caFile })
  return endpoint => openTunnel(proxy, endpoint, { signal, secureContext })
}

/** The address a redirect leads to; undefined when it names none. */
function readLocation(response: Response, base: URL): URL | undefined {
  const location = response.headers.get('location')
  if (location === null) return undefined
  const utf8 = Buffer.from(location, 'latin1').toString() // node reads the bytes of a header as latin1
  return URL.canParse(utf8, base.href) ? new URL(utf8, base) : undefined
}

function basicAuthorization({ username, password }: URL): string | undefined {
  if (!username && !password) return undefined
  const credentials = Buffer.concat([percentDecode(username), Buffer.from(':'), percentDecode(password)])
  return `Basic ${credentials.toString('base64')}`
}

/** node-fetch refuses a URL with credentials. */
function withoutCredentials(url: URL): URL {
  const plain = new URL(url)
  plain.username = ''
  plain.password = ''
  return plain
}

/** Host, port and path in quotes, without scheme, credentials and query; no address can be left in the path. */
function quoteUrl({ protocol, host, pathname }: URL): string {
  const full = `${host || protocol}${pathname === '/' ? '' : pathname}`.replace(/\/{2,}/g, '/')
  return `"${full.length > 120 ? `${full.slice(0, 60)}…${full.slice(-50)}` : full}"`
}
