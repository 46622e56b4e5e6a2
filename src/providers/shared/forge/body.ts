import { createHash, type Hash } from 'node:crypto'
import type { UploadObject } from '../../contract.ts'
import { readBody } from '../body.ts'

/** The end of `{…,"content":""}`, behind which nothing but the content is missing. */
const TAIL = '"}'

/**
 * The body of a commit: JSON whose last member is the object in base64. It is encoded while it is sent, so that a large
 * one is never held as a whole.
 */
export function createCommitBody(
  object: UploadObject,
  members: Readonly<Record<string, unknown>>,
): { body: (signal: AbortSignal) => AsyncGenerator<Buffer>; length: number } {
  const head = JSON.stringify({ ...members, content: '' }).slice(0, -TAIL.length)
  const length = Buffer.byteLength(head) + Math.ceil(object.size / 3) * 4 + TAIL.length
  return { body: signal => encode(head, object, signal), length }
}

async function* encode(head: string, object: UploadObject, signal: AbortSignal): AsyncGenerator<Buffer> {
  yield Buffer.from(head)
  let rest: Buffer = Buffer.alloc(0)
  for await (const chunk of readBody(object, signal)) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    const whole = bytes.length - (bytes.length % 3)
    if (whole > 0) yield Buffer.from(bytes.toString('base64', 0, whole), 'latin1')
    rest = bytes.subarray(whole)
  }
  yield Buffer.from(rest.toString('base64') + TAIL)
}

/** Whether a name of git's is that of the bytes, or of the pointer that a repository with Git LFS has in their place. */
export async function isBlobOf(object: UploadObject, name: string, signal: AbortSignal): Promise<boolean> {
  const { size, sha256 } = object
  const hash = startBlobHash(name, size)
  for await (const chunk of readBody(object, signal)) hash.update(chunk)
  if (hash.digest('hex') === name) return true
  // github.com/git-lfs/git-lfs, docs/spec.md
  const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${sha256}\nsize ${size}\n`
  return startBlobHash(name, pointer.length).update(pointer).digest('hex') === name
}

/** SHA-1, or SHA-256 in repositories made for it, as the length of a name tells. */
function startBlobHash(like: string, bytes: number): Hash {
  return createHash(like.length === 64 ? 'sha256' : 'sha1').update(`blob ${bytes}\0`)
}
