import type { Request, Response } from 'express'

/** What the plain text of an answer is made of: members of its JSON. */
interface ReplyText {
  readonly success?: unknown
  readonly message?: unknown
  readonly result?: readonly string[]
  readonly finalizationId?: string
}

/** Writes an answer of /upload: as JSON, unless the client wants text. */
export function sendBody(res: Response, body: object): void {
  if (wantsText(res.req)) res.type('text/plain').send(toText(body))
  else {
    // What `res.json` comes to with these settings, without its look at types, character sets and tags.
    const json = JSON.stringify(body)
    res.setHeader('Content-Type', 'application/json; charset=utf-8')
    res.setHeader('Content-Length', Buffer.byteLength(json))
    res.end(json)
  }
}

/**
 * Whether a client wants plain text: it accepts that and no JSON. Many name `text/plain` beside JSON or a wildcard and
 * read JSON all the same.
 */
function wantsText(req: Request): boolean {
  return /text\/(?:plain|\*)/i.test(req.headers.accept ?? '') && !req.accepts('json')
}

/** One address a line. Of a failure first what happened, in one line, then the id to finish it with, then what was stored. */
function toText({ success, message, finalizationId, result = [] }: ReplyText): string {
  const words = success === true ? [] : [String(message).replace(/\s+/g, ' ')]
  const id = finalizationId === undefined ? [] : [`finalizationId: ${finalizationId}`]
  return [...words, ...id, ...result].map(line => `${line}\n`).join('')
}
