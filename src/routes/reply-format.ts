import type { Request } from 'express'

/** The members of a JSON answer of /upload that its text is made of. */
interface Told {
  readonly success?: unknown
  readonly message?: unknown
  readonly result?: readonly string[]
  readonly finalizationId?: string
}

/**
 * Whether a client wants plain text: it accepts that and no JSON. Many name `text/plain` beside JSON or a wildcard and
 * read JSON all the same.
 */
export function wantsText(req: Request): boolean {
  return /text\/(?:plain|\*)/i.test(req.headers.accept ?? '') && !req.accepts('json')
}

/** One address a line. Of a failure first what happened, in one line, then the id to finish it with, then what was stored. */
export function toText({ success, message, finalizationId, result = [] }: Told): string {
  const words = success === true ? [] : [String(message).replace(/\s+/g, ' ')]
  const id = finalizationId === undefined ? [] : [`finalizationId: ${finalizationId}`]
  return [...words, ...id, ...result].map(line => `${line}\n`).join('')
}
