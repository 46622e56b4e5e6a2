import type { Request, Response } from 'express'
import { formatLink } from '../page/client/links.ts'
import { baseName } from '../payload/file-name.ts'
import { queryOf } from './target.ts'

/** How an answer may be written. */
export const REPLIES = ['json', 'text', 'markdown', 'html', 'bbcode'] as const
type Reply = (typeof REPLIES)[number]

/** What the text of an answer is made of: members of its JSON. */
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

/** Writes an answer of /upload: as JSON, unless the client wants text. */
export function sendBody(res: Response, body: object): void {
  const reply = replyOf(res.req)
  if (reply === 'json') {
    // What `res.json` comes to with these settings, without its look at types, character sets and tags.
    const json = JSON.stringify(body)
    res.setHeader('Content-Type', 'application/json; charset=utf-8')
    res.setHeader('Content-Length', Buffer.byteLength(json))
    res.end(json)
    return
  }
  // HTML is to be pasted: as a page of this server it would be one that its callers write.
  res.type(reply === 'markdown' ? 'text/markdown' : 'text/plain').send(toText(body, reply))
}

/** What the query asks for, else the header. Failures come before the query has been checked: what is unknown is JSON. */
function replyOf(req: Request): Reply {
  const asked = queryOf(req.url).get('reply')?.toLowerCase()
  if (asked) return REPLIES.find(one => one === asked) ?? 'json'
  // Many name `text/plain` beside JSON or a wildcard and read JSON all the same.
  const { accept = '' } = req.headers
  if (!/text\/(?:plain|markdown|\*)/i.test(accept) || req.accepts('json')) return 'json'
  return req.accepts(['text/plain', 'text/markdown']) === 'text/markdown' ? 'markdown' : 'text'
}

/** One line for each link. When there are none: what happened, in one line, then the id to finish it with. */
function toText({ message, items = [], finalizationId }: ReplyText, reply: Exclude<Reply, 'json'>): string {
  const links = items.map(item => toLink(item, reply))
  const words = [String(message).replace(/\s+/g, ' ')]
  if (finalizationId !== undefined) words.push(`finalizationId: ${finalizationId}`)
  return (links.length > 0 ? links : words).map(line => `${line}\n`).join('')
}

function toLink({ imgUrl: url, origin, fileName, contentType }: Item, reply: Exclude<Reply, 'json'>): string {
  if (reply === 'text') return url
  // An address is no name for people, and may be of any length.
  const name = /^(?:[a-z][a-z\d+.-]+:|clipboard$|$)/i.test(origin) ? fileName : baseName(origin)
  return formatLink(
    { url, name: name.replace(/\s+/g, ' '), isImage: contentType.startsWith('image/') },
    reply,
  )
}
