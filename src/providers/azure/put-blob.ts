import { randomBytes } from 'node:crypto'
import { type Body, divide, inMemory } from '../../body.ts'
import { retry } from '../../flow/retry.ts'
import { Problem } from '../../problem.ts'
import type { UploadObject } from '../contract.ts'
import type { BlobRequest, SendBlob } from './container.ts'

const MIB = 1024 * 1024
/** Maximum size of a blob that is sent in one request, in bytes. Larger blobs are sent as block uploads. */
const MAX_AT_ONCE = 64 * MIB
/** Minimum size of a block, in bytes. */
const BLOCK_BYTES = 8 * MIB
/** Maximum number of blocks of a blob, a limit of the service. */
const MAX_BLOCKS = 50_000
const PROBE = inMemory(Buffer.from('probe'))
/** Number of attempts to send one block before the whole upload fails. */
const BLOCK_ATTEMPTS = 4

type Headers = Readonly<Record<string, string>>

/**
 * Stores a blob atomically.
 *
 * @param properties headers of the blob: `x-ms-blob-…` and `x-ms-access-tier`
 */
export async function putBlob(
  send: SendBlob,
  object: UploadObject,
  properties: Headers,
  signal: AbortSignal,
): Promise<void> {
  const { key: name, contentType } = object
  const all = { ...properties, 'x-ms-blob-content-type': contentType }
  if (object.size > MAX_AT_ONCE) return putInBlocks(send, object, all, signal)
  const headers = { ...all, 'x-ms-blob-type': 'BlockBlob', 'content-type': contentType }
  await send({ method: 'PUT', name, headers, body: object, accept: [201] }, signal)
}

/** Sends a blob in blocks and commits them. The service removes blocks without a commit after a week. */
async function putInBlocks(
  send: SendBlob,
  object: UploadObject,
  properties: Headers,
  signal: AbortSignal,
): Promise<void> {
  const [name, upload] = [object.key, randomBytes(12).toString('hex')]
  const blockBytes = Math.max(BLOCK_BYTES, Math.ceil(object.size / MAX_BLOCKS))
  const ids: string[] = []
  for (const block of divide(object, blockBytes)) {
    // Block IDs must have the same length, and must differ from those of a concurrent upload to the same name.
    const id = Buffer.from(`${upload}-${String(ids.length + 1).padStart(5, '0')}`).toString('base64')
    const request = blockRequest(name, id, block)
    await retry(() => send(request, signal), { attempts: BLOCK_ATTEMPTS }, signal)
    ids.push(id)
  }
  const list = ids.map(id => `<Uncommitted>${id}</Uncommitted>`).join('')
  const body = Buffer.from(`<?xml version="1.0" encoding="utf-8"?><BlockList>${list}</BlockList>`)
  const headers = { ...properties, 'content-type': 'application/xml' }
  const query = { comp: 'blocklist' }
  const { status } = await send({ method: 'PUT', name, query, headers, body, accept: [201, 400] }, signal)
  if (status === 201) return
  throw new Problem('its blocks were discarded because another upload stored a blob with this name', {
    retryable: true,
  })
}

/** Checks the permission to upload with a block that is never committed. It is invisible, and the service removes it. */
export async function probeContainer(send: SendBlob, signal: AbortSignal): Promise<void> {
  const id = Buffer.from('probe').toString('base64')
  const name = `upload-server-${randomBytes(8).toString('hex')}`
  await send(blockRequest(name, id, PROBE), signal)
}

function blockRequest(name: string, id: string, body: Body): BlobRequest {
  const headers = { 'content-type': 'application/octet-stream' }
  const query = { comp: 'block', blockid: id }
  return { method: 'PUT', name, query, headers, body, accept: [201] }
}
