import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { readBody } from '../body.ts'
import type { UploadObject } from '../provider.ts'

/** The end of `{…,"content":""}`, behind which nothing but the content is missing. */
const TAIL = '"}'

/**
 * The body of a commit: JSON whose last member is the object in base64. It is encoded while it is sent, so that a large
 * one is never held as a whole.
 */
export function createCommitBody(
  object: UploadObject,
  members: Readonly<Record<string, unknown>>,
): { body: (signal: AbortSignal) => Readable; length: number } {
  const head = JSON.stringify({ ...members, content: '' }).slice(0, -TAIL.length)
  const length = Buffer.byteLength(head) + Math.ceil(object.size / 3) * 4 + TAIL.length
  const body = (signal: AbortSignal) => Readable.from(encode(head, object, signal), { objectMode: false })
  return { body, length }
}

async function* encode(head: string, object: UploadObject, signal: AbortSignal): AsyncGenerator<string> {
  yield head
  let rest: Buffer = Buffer.alloc(0)
  for await (const chunk of readBody(object, signal)) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    const whole = bytes.length - (bytes.length % 3)
    if (whole > 0) yield bytes.toString('base64', 0, whole)
    rest = bytes.subarray(whole)
  }
  yield rest.toString('base64') + TAIL
}

/** The name git gives to the bytes, in the notation of `like`: SHA-1, or SHA-256 in repositories made for it. */
export async function hashBlob(object: UploadObject, like: string, signal: AbortSignal): Promise<string> {
  const hash = createHash(like.length === 64 ? 'sha256' : 'sha1').update(`blob ${object.size}\0`)
  for await (const chunk of readBody(object, signal)) hash.update(chunk)
  return hash.digest('hex')
}
