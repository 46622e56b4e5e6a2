/** Maximum length of a token, characters. */
const LONGEST_TOKEN = 16 * 1024

/** Minimum time between two fetches of the keys of an issuer, also after a failure. Seconds. */
export const KEYS_PAUSE_S = 30

/**
 * Why a token is not accepted. `unfit`: its issuer signed it, as far as that can be known, but it has expired or is for
 * others; `forged`: it is not a token, or its signature is wrong; `unavailable`: the keys of its issuer are not known at
 * present.
 */
export interface TokenRefusal {
  readonly outcome: 'unfit' | 'forged' | 'unavailable'
  /** For the log. It never has the token. */
  readonly reason: string
}

/** What a token proves, by the rules with this index. */
export type TokenVerdict =
  | { readonly outcome: 'accepted'; readonly index: number; readonly user: string }
  | TokenRefusal

export interface TokenVerifier {
  /** Headers of reverse proxies that may have a token, in lower case. */
  readonly headers: readonly string[]
  /** @param header where the token was; undefined: where upload keys are */
  verify(token: string, header: string | undefined): Promise<TokenVerdict>
}

/** Whether a text has the form of a token, which upload keys don't have: three parts with dots between. */
export function isTokenLike(text: string): boolean {
  return text.length <= LONGEST_TOKEN && /^[\w-]+\.[\w-]+\.[\w-]*$/.test(text)
}
