import { createHash } from 'node:crypto'
import type { Body } from '../../../body.ts'
import type { UploadObject } from '../../contract.ts'

/** The end of `{…,"content":""}`, into which the content is inserted. */
const TAIL = '"}'

/**
 * Makes the body of a commit: JSON whose last member is the object in Base64. It is encoded while it is sent, so that a large
 * object is never held in memory.
 */
export function createCommitBody(object: UploadObject, members: Readonly<Record<string, unknown>>): Body {
  const head = JSON.stringify({ ...members, content: '' }).slice(0, -TAIL.length)
  const size = Buffer.byteLength(head) + Math.ceil(object.size / 3) * 4 + TAIL.length
  return { size, read: signal => encode(head, object, signal) }
}

async function* encode(head: string, object: UploadObject, signal: AbortSignal): AsyncGenerator<Buffer> {
  yield Buffer.from(head)
  let rest: Buffer = Buffer.alloc(0)
  for await (const chunk of object.read(signal)) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    const whole = bytes.length - (bytes.length % 3)
    if (whole > 0) yield Buffer.from(bytes.toString('base64', 0, whole), 'latin1')
    rest = Buffer.from(bytes.subarray(whole))
  }
  yield Buffer.from(rest.toString('base64') + TAIL)
}

/** Returns whether a Git object ID is that of the bytes: SHA-1 or SHA-256, by the repository. */
export async function isBlobOf(object: UploadObject, id: string, signal: AbortSignal): Promise<boolean> {
  const hash = createHash(id.length === 64 ? 'sha256' : 'sha1').update(`blob ${object.size}\0`)
  for await (const chunk of object.read(signal)) hash.update(chunk)
  return hash.digest('hex') === id
}
