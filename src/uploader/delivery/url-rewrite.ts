import { replaceForeign } from '../../flow/foreign-expression.ts'

/** One rule: what matches the regular expression `from` becomes `to`, with `$1` and the like. */
export interface RewriteRule {
  readonly from: string
  readonly to: string
  /** `g` for every match, `i` for case-insensitive. */
  readonly flags?: string
}

/**
 * Rewrites the URLs of a destination, rule after rule, each applied to the result of the previous one. The result must be
 * an http or https URL. A rule with another result, or that takes longer than 100 ms, is skipped.
 */
export function createUrlRewrite(rules: readonly RewriteRule[]): (url: string) => string {
  const compiled = rules.map(({ from, to, flags }) => ({ from: new RegExp(from, flags), to }))
  return url =>
    compiled.reduce((before, { from, to }) => {
      const after = rewrite(before, from, to)
      return /^https?:\/\/[^/]/.test(after) && URL.canParse(after) ? new URL(after).href : before
    }, url)
}

function rewrite(url: string, from: RegExp, to: string): string {
  try {
    return replaceForeign(from, url, to)
  } catch {
    return url
  }
}
