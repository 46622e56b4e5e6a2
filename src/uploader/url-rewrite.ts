/** Longer URLs are not rewritten, because an expression may take quadratic time. Characters. */
const LONGEST_URL = 8192

/** One rule: what matches the regular expression `from` becomes `to`, with `$1` and similar. */
export interface RewriteRule {
  readonly from: string
  readonly to: string
  /** `g` for every match, `i` for case-insensitive. */
  readonly flags?: string
}

/**
 * Rewrites the URLs of a destination, rule after rule, each applied to the result of the previous one. The result must be
 * an http or https URL. A rule with another result is skipped.
 */
export function createUrlRewrite(rules: readonly RewriteRule[]): (url: string) => string {
  const compiled = rules.map(({ from, to, flags }) => ({ from: new RegExp(from, flags), to }))
  return url =>
    compiled.reduce((before, { from, to }) => {
      const after = before.length > LONGEST_URL ? before : before.replace(from, to)
      return /^https?:\/\/[^/]/.test(after) && URL.canParse(after) ? new URL(after).href : before
    }, url)
}
