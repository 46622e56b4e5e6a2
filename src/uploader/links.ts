import type { Stored } from '../providers/contract.ts'
import { encodeKey, encodeSegment } from '../providers/shared/public-url.ts'
import { cleanLink } from '../safe-text.ts'
import type { Destination } from './destinations.ts'

/** Settings from which links are made. */
export type LinkRules = Pick<Destination, 'id' | 'rewriteUrl'>

/**
 * The URL of a stored object as the database keeps it. It is relative if this server serves or redirects it: a client that
 * sends the `Host` of another server must not choose the links of others.
 */
export function keptUrl(
  { type, name, redirects, rewriteUrl }: Destination,
  key: string,
  { url }: Pick<Stored, 'url'>,
): string {
  if (redirects) return `links/${type}/${encodeSegment(name)}/${encodeKey(key)}`
  return URL.canParse(url) ? cleanLink(rewriteUrl(new URL(url).href)) : url
}

/** The same for an object that was stored before. It is signed again if signed URLs expire. */
export async function keptUrlAgain(
  destination: Destination,
  { key, url }: { readonly key: string; readonly url: string },
  signal: AbortSignal,
): Promise<string> {
  const { target, redirects } = destination
  if (!redirects && !target.traits?.linksExpire) return url
  const signed = redirects ? undefined : await target.sign?.(key, 'GET', Number.POSITIVE_INFINITY, signal)
  return keptUrl(destination, key, signed ?? { url })
}

/**
 * The link of a kept URL. It is safe in any text format.
 *
 * @param destination `provider/configName` of the destination that stores the object
 * @param baseUrl of this server as the client sees it, with a final slash
 */
export function linkOf(
  destination: string,
  url: string,
  baseUrl: string,
  destinations: readonly LinkRules[],
): string {
  if (URL.canParse(url)) return url
  const rewriteUrl = destinations.find(one => one.id === destination)?.rewriteUrl
  const link = new URL(url, baseUrl).href
  return cleanLink(rewriteUrl ? rewriteUrl(link) : link)
}

/** A file of an upload, or an entry of the history. */
interface Linked {
  readonly url: string
  readonly destination: string
  readonly mirrors?: readonly { readonly destination: string; readonly url?: string }[] | undefined
}

/** The same with links instead of kept URLs. */
export function withLinks<T extends Linked>(file: T, baseUrl: string, destinations: readonly LinkRules[]): T {
  const url = linkOf(file.destination, file.url, baseUrl, destinations)
  if (!file.mirrors) return { ...file, url }
  const mirrors = file.mirrors.map(copy =>
    copy.url === undefined
      ? copy
      : { ...copy, url: linkOf(copy.destination, copy.url, baseUrl, destinations) },
  )
  return { ...file, url, mirrors }
}
