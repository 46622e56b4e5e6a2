import * as z from '../../packages/zod.ts'

/** What is appended to every URL, as an option: a query, or the name of a version of the picture. */
export function urlSuffix() {
  return z
    .string()
    .regex(/^[\w!$&+,./:;=?@%|~#-]+$/, 'must consist of characters that a URL may have')
    .describe('Appended to every URL.')
}

/** What PicGo appends to URLs, with characters that end a link percent-encoded. */
export function toUrlSuffix(options: string | undefined): string | undefined {
  return options?.replace(/[^\w!$&+,./:;=?@%|~#-]/gu, encodeForLink)
}

/** encodeURIComponent leaves some of them as they are. */
function encodeForLink(character: string): string {
  const encoded = encodeURIComponent(character.toWellFormed())
  return encoded === character ? `%${character.charCodeAt(0).toString(16).toUpperCase()}` : encoded
}
