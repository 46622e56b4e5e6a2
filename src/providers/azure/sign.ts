import { createHmac } from 'node:crypto'

/** Version of the REST API, for requests and for SAS tokens: the first one with the access tier "Cold". */
export const API_VERSION = '2021-12-02'

export interface AccountKey {
  readonly account: string
  /** Base64 text, as the portal shows it. */
  readonly key: string
}

/** Headers whose values are signed, without their names and in this order. */
const SIGNED_HEADERS = (
  'content-encoding content-language content-length content-md5 content-type date ' +
  'if-modified-since if-match if-none-match if-unmodified-since range'
).split(' ')

/**
 * Creates the value of `Authorization`, as in "Authorize with Shared Key" of Microsoft's REST reference.
 *
 * @param headers all headers of the request, with lower-case names
 */
export function signRequest(
  method: string,
  url: URL,
  headers: Readonly<Record<string, string>>,
  { account, key }: AccountKey,
): string {
  const values = SIGNED_HEADERS.map(name => headers[name] ?? '').map((value, i) =>
    SIGNED_HEADERS[i] === 'content-length' && value === '0' ? '' : value,
  )
  const own = Object.keys(headers).filter(name => name.startsWith('x-ms-'))
  const ownLines = own.sort().map(name => `${name}:${headers[name]?.trim()}\n`)
  const query = [...url.searchParams].map(([name, value]) => `\n${name.toLowerCase()}:${value}`).sort()
  const resource = `/${account}${url.pathname}${query.join('')}`
  return `SharedKey ${account}:${hmac([method, ...values, ownLines.join('') + resource].join('\n'), key)}`
}

/**
 * Creates a query that gives read access to one blob: a service SAS, as in "Create a service SAS" of the same reference.
 *
 * @param path `container/name`, not encoded
 * @param withHttp if true, the URL also works without TLS
 */
export function createReadToken(
  path: string,
  expires: Date,
  withHttp: boolean,
  { account, key }: AccountKey,
): string {
  const expiry = expires.toISOString().replace(/\.\d+Z$/, 'Z')
  const token = { sv: API_VERSION, spr: withHttp ? 'https,http' : 'https', se: expiry, sr: 'b', sp: 'r' }
  const { sv, spr, se, sr, sp } = token
  // The empty fields are: start, stored policy, IP range; at the end, snapshot, encryption scope and overridden headers.
  const signed = [sp, '', se, `/blob/${account}/${path}`, '', '', spr, sv, sr, ...Array<string>(7).fill('')]
  return new URLSearchParams({ ...token, sig: hmac(signed.join('\n'), key) }).toString()
}

function hmac(text: string, key: string): string {
  return createHmac('sha256', Buffer.from(key, 'base64')).update(text).digest('base64')
}
