import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Mask } from '../mask.ts'

const VALID_ID = /^[\w.:/+=-]{1,128}$/

/** The ID of a request: the one its client sent if it is valid and contains no secret, or else a new one. */
export function requestIdOf(req: IncomingMessage, mask: Mask): string {
  const sent = req.headers['x-request-id']
  return typeof sent === 'string' && VALID_ID.test(sent) && mask(sent) === sent ? sent : randomUUID()
}
