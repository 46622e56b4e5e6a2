import type { Stored } from '../../providers/contract.ts'
import { encodeKey, encodeSegment } from '../../providers/shared/public-url.ts'
import { cleanLink } from '../../safe-text.ts'
import type { HistoryEntry } from '../../store/contract.ts'
import type { Destination } from './destinations.ts'

/** The link to what was stored under a key, which may be written into any text. */
export function linkTo(
  { type, name, redirects, rewriteUrl }: Destination,
  key: string,
  { url }: Stored,
  baseUrl: string,
): string {
  const address = redirects ? `links/${type}/${encodeSegment(name)}/${encodeKey(key)}` : url
  return cleanLink(rewriteUrl(new URL(address, baseUrl).href))
}

/** The link to what the history knows. An address that ends after a while may have ended. */
export async function linkAgain(
  destination: Destination,
  { key, url }: HistoryEntry,
  baseUrl: string,
  signal: AbortSignal,
): Promise<string> {
  const { target, redirects } = destination
  if (!redirects && !target.linksExpire) return cleanLink(url)
  const signed = redirects ? undefined : await target.sign?.(key, 'GET', Number.POSITIVE_INFINITY, signal)
  return linkTo(destination, key, signed ?? { url }, baseUrl)
}
