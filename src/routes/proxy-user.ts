import { UploadError } from '../errors.ts'
import { inRanges, parseRange } from '../ip-ranges.ts'
import { createKeyFinder, readAsUtf8 } from './credentials.ts'
import { MAX_HEADERS } from './loopback.ts'
import type { Permissions } from './permissions.ts'

/** `auth.reverseProxy`: an authenticating reverse proxy that names the person behind a request. */
export interface ProxyAuth extends Permissions {
  /** IP addresses, CIDR ranges, and `unix` for the Unix socket that the server listens on. */
  readonly from: readonly string[]
  /** Header with the name of the person, in lower case. */
  readonly userHeader: string
  readonly preset?: string | undefined
  /** Whether the header is known to hold one name, so that a comma in it shows that two values were joined. */
  readonly isPreset: boolean
  readonly secretHeader?: { readonly name: string; readonly value: string } | undefined
  /** Whether an upload key is needed as well. */
  readonly requireKey: boolean
}

/** The part of a request that says where it came from. */
export interface ProxiedRequest {
  /** Undefined for a Unix socket. */
  readonly peerAddress: string | undefined
  /** Names and values in turn, as they came. */
  readonly rawHeaders: readonly string[]
}

export interface ProxyUsers {
  /** Whether the peer is the reverse proxy, so that no client behind it is local. */
  isProxy(peerAddress: string | undefined): boolean
  /**
   * The name of the person, or undefined if the reverse proxy sends no name, or the request didn't come from it.
   *
   * @throws AmbiguousUser `unauthorized` if the headers of the reverse proxy are ambiguous, because a client may have added
   *   one of them. Its cause says which; the client isn't told
   */
  nameOf(request: ProxiedRequest): string | undefined
  /** Why the reverse proxy sends no valid name, for the log. Undefined if the request didn't come from it. */
  explainNameless(request: ProxiedRequest): string | undefined
}

/** Maximum length of a name, bytes. */
const LONGEST_NAME = 255

/**
 * What reverse proxies send instead of a name that they don't have: Caddy before 2.10 the name of the variable
 * (github.com/caddyserver/caddy/pull/6608), Apache's mod_headers the text `(null)`.
 */
const UNFILLED = /^(?:[$%]?\{.*\}|\(null\))$/

/**
 * Identifies people by the header that an authenticating reverse proxy adds. The header is a claim, not a proof: it only
 * counts if the reverse proxy itself sent the request, and if nothing suggests that the client added it.
 */
export function createProxyUsers({ from, userHeader, isPreset, secretHeader }: ProxyAuth): ProxyUsers {
  const isFrom = createPeerMatcher(from)
  const findSecret = createKeyFinder(secretHeader ? [secretHeader.value] : [])
  const secretName = secretHeader?.name.toLowerCase()
  const hasSecret = (rawHeaders: readonly string[]) => {
    if (secretName === undefined) return true
    const secret = onlyValue(rawHeaders, secretName)
    return secret !== undefined && findSecret([secret, readAsUtf8(secret)]).length > 0
  }

  return {
    isProxy: isFrom,
    nameOf({ peerAddress, rawHeaders }) {
      if (!isFrom(peerAddress)) return undefined
      if (rawHeaders.length / 2 > MAX_HEADERS)
        throw ambiguous(`the request has more than ${MAX_HEADERS} headers, of which Node may drop some`)
      if (!hasSecret(rawHeaders)) return undefined
      const value = onlyValue(rawHeaders, userHeader)
      return value === undefined ? undefined : readName(value, userHeader, isPreset)
    },
    explainNameless({ peerAddress, rawHeaders }) {
      if (!isFrom(peerAddress)) return undefined
      if (!hasSecret(rawHeaders)) return `the header "${secretName}" is missing or wrong`
      return `the header "${userHeader}" is missing`
    },
  }
}

/** Recognizes peers by IP address. */
function createPeerMatcher(from: readonly string[]): ProxyUsers['isProxy'] {
  const isListed = inRanges(from.flatMap(one => parseRange(one) ?? []))
  // The configuration allows "unix" only if the server listens on nothing else: a closed TCP connection has no address, too.
  return address => (address === undefined ? from.includes('unix') : isListed(address))
}

/** The value of a header that may be there once. Node would join the values of several, so the raw headers are read. */
function onlyValue(rawHeaders: readonly string[], name: string): string | undefined {
  let found: string | undefined
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const spelled = String(rawHeaders[i]).toLowerCase()
    if (spelled !== name && spelled.replaceAll('_', '-') === name)
      throw ambiguous(`"${name}" is also there with underscores`)
    if (spelled !== name) continue
    if (found !== undefined) throw ambiguous(`"${name}" is there more than once`)
    found = String(rawHeaders[i + 1])
  }
  return found
}

/** @param value as Node reads it, each byte a character */
function readName(value: string, header: string, isPreset: boolean): string {
  if (value === '') throw ambiguous(`"${header}" is empty`)
  if (value.length > LONGEST_NAME) throw ambiguous(`"${header}" is longer than ${LONGEST_NAME} bytes`)
  if (isPreset && value.includes(',')) throw ambiguous(`"${header}" has a comma, so it may be two values`)
  const name = readAsUtf8(value)
  // Two people must not have one name, so bytes that aren't UTF-8 are not replaced.
  if (name.includes('\ufffd')) throw ambiguous(`"${header}" is not valid UTF-8`)
  if (UNFILLED.test(name))
    throw ambiguous(`"${header}" is a placeholder that the reverse proxy did not fill in`)
  if (/\p{Cc}/u.test(name)) throw ambiguous(`"${header}" has control characters`)
  return name
}

/** The headers of the reverse proxy are ambiguous. No upload key helps. */
export class AmbiguousUser extends UploadError {}

function ambiguous(why: string): UploadError {
  return new AmbiguousUser(
    'unauthorized',
    'The reverse proxy does not say clearly who you are. Ask its operator; the log of upload-server names the header.',
    { cause: new Error(`auth.reverseProxy: ${why}. Make the reverse proxy remove what clients send`) },
  )
}
