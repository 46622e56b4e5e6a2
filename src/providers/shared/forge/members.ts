import type { HttpReply } from '../../../http/client.ts'

export type Members = Readonly<Record<string, unknown>>

/**
 * The members of a JSON object in an answer.
 *
 * @throws UploadError `delivery_failed` when it is no JSON, as a page that asks for a login
 */
export function readMembers(reply: HttpReply): Members {
  return membersOf(reply.json())
}

export function membersOf(value: unknown): Members {
  return typeof value === 'object' && value !== null ? (value as Members) : {}
}
