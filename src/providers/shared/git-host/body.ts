import { createHash, type Hash } from 'node:crypto'
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

/** Returns whether a Git object ID is that of the bytes, or of the Git LFS pointer that replaces them. */
export async function isBlobOf(object: UploadObject, name: string, signal: AbortSignal): Promise<boolean> {
  const { size, sha256 } = object
  const hash = startBlobHash(name, size)
  for await (const chunk of object.read(signal)) hash.update(chunk)
  if (hash.digest('hex') === name) return true
  // github.com/git-lfs/git-lfs, docs/spec.md
  const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${sha256}\nsize ${size}\n`
  return startBlobHash(name, pointer.length).update(pointer).digest('hex') === name
}

/** Uses SHA-1 or SHA-256, by the length of the object ID of the repository. */
function startBlobHash(like: string, bytes: number): Hash {
  return createHash(like.length === 64 ? 'sha256' : 'sha1').update(`blob ${bytes}\0`)
}
