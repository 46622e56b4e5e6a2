import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Mask } from '../mask.ts'

const VALID_ID = /^[\w.:/+=-]{1,128}$/

/** The id of a request: the valid one its client sent, unless there is a secret in it, else a new one. */
export function requestIdOf(req: IncomingMessage, mask: Mask): string {
  const sent = req.headers['x-request-id']
  return typeof sent === 'string' && VALID_ID.test(sent) && mask(sent) === sent ? sent : randomUUID()
}
