import { isObject, type Members } from '../members.ts'

/** Maximum length of a token, characters. */
const LONGEST_TOKEN = 16 * 1024

/** What a token proves. `reason` is for the log; it never has the token. */
export type TokenVerdict =
  /** `index` of the rules that it fits. */
  | { readonly outcome: 'accepted'; readonly index: number; readonly user: string }
  /** Its issuer signed it, as far as that can be known, but it has expired or is for others. */
  | { readonly outcome: 'unfit'; readonly reason: string }
  /** It is not a token, or its signature is wrong. */
  | { readonly outcome: 'forged'; readonly reason: string }
  /** The keys of its issuer are not known at present. */
  | { readonly outcome: 'unavailable'; readonly reason: string; readonly retryAfterS: number }

export interface TokenVerifier {
  /** Headers of reverse proxies that may have a token, in lower case. */
  readonly headers: readonly string[]
  /** @param header where the token was; undefined: where upload keys are */
  verify(token: string, header: string | undefined): Promise<TokenVerdict>
}

/** The header and the claims of a token, whose signature has not been checked. Undefined for any other text. */
export function readToken(
  token: string,
): { readonly header: Members; readonly payload: Members } | undefined {
  if (!isTokenLike(token)) return undefined
  const [header, payload] = token.split('.').map(readPart)
  return header && payload && { header, payload }
}

/** Whether a text has the form of a token, which upload keys don't have: three parts with dots between. */
export function isTokenLike(text: string): boolean {
  return text.length <= LONGEST_TOKEN && /^[\w-]+\.[\w-]+\.[\w-]*$/.test(text)
}

// Of members that are there twice, the last one counts, here as in jose (RFC 7515, 4; RFC 7519, 4).
function readPart(part: string): Members | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'))
    return isObject(value) && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}
