import type { Stored } from '../../providers/contract.ts'
import { encodeKey, encodeSegment } from '../../providers/shared/public-url.ts'
import { cleanLink } from '../../safe-text.ts'
import type { HistoryEntry } from '../../store/contract.ts'
import type { Destination } from './destinations.ts'

/** The URL of a stored object. It is safe in any text format. */
export function linkTo(
  { type, name, redirects, rewriteUrl }: Destination,
  key: string,
  { url }: Stored,
  baseUrl: string,
): string {
  const target = redirects ? `links/${type}/${encodeSegment(name)}/${encodeKey(key)}` : url
  return cleanLink(rewriteUrl(new URL(target, baseUrl).href))
}

/** The URL of an object in the history. It is signed again if signed URLs expire. */
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
