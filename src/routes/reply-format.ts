import type { Request, Response } from 'express'
import { formatLink } from '../page/links.ts'
import { baseName } from '../payload/file-name.ts'
import { parametersOf } from './target.ts'

/** Formats of a response. */
export const REPLIES = ['json', 'text', 'markdown', 'html', 'bbcode'] as const
type ReplyFormat = (typeof REPLIES)[number]

/** The members of the JSON that a text response is made of. */
interface ReplyText {
  readonly message?: unknown
  readonly items?: readonly Item[]
  readonly finalizationId?: string
}

interface Item {
  readonly imgUrl: string
  readonly origin: string
  readonly fileName: string
  readonly contentType: string
}

/** Sends a response of /upload as JSON, unless the client requested text. */
export function sendBody(res: Response, body: object): void {
  const reply = replyOf(res.req)
  if (reply === 'json') {
    // Equivalent to `res.json` with these settings, but without its checks of media types, character sets and ETags.
    const json = JSON.stringify(body)
    res.setHeader('Content-Type', 'application/json; charset=utf-8')
    res.setHeader('Content-Length', Buffer.byteLength(json))
    res.end(json)
    return
  }
  // HTML is sent as plain text: as a page in this server's origin, its content would be up to clients.
  res.type(reply === 'markdown' ? 'text/markdown' : 'text/plain').send(toText(body, reply))
}

/** The format in the query, or else in the header. Failures can precede the check of the query, so an unknown format is JSON. */
function replyOf(req: Request): ReplyFormat {
  const asked = parametersOf(req.url).get('reply')?.toLowerCase()
  if (asked) return REPLIES.find(one => one === asked) ?? 'json'
  // Many clients accept `text/plain` in addition to JSON or a wildcard, but read JSON.
  const { accept = '' } = req.headers
  if (!/text\/(?:plain|markdown|\*)/i.test(accept) || req.accepts('json')) return 'json'
  return req.accepts(['text/plain', 'text/markdown']) === 'text/markdown' ? 'markdown' : 'text'
}

/** One line per link. Without links: the message in one line, then the finalizationId. */
function toText(
  { message, items = [], finalizationId }: ReplyText,
  reply: Exclude<ReplyFormat, 'json'>,
): string {
  const links = items.map(item => toLink(item, reply))
  const words = [String(message).replace(/\s+/g, ' ')]
  if (finalizationId !== undefined) words.push(`finalizationId: ${finalizationId}`)
  return (links.length > 0 ? links : words).map(line => `${line}\n`).join('')
}

function toLink(
  { imgUrl: url, origin, fileName, contentType }: Item,
  reply: Exclude<ReplyFormat, 'json'>,
): string {
  if (reply === 'text') return url
  // A URL is not a readable name, and can have any length.
  const name = /^(?:[a-z][a-z\d+.-]+:|clipboard$|$)/i.test(origin) ? fileName : baseName(origin)
  return formatLink(
    { url, name: name.replace(/\s+/g, ' '), isImage: contentType.startsWith('image/') },
    reply,
  )
}
