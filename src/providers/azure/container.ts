import { randomBytes } from 'node:crypto'
import { type Body, divide, inMemory } from '../../body.ts'
import { retry } from '../../flow/retry.ts'
import type { HttpClient, HttpReply, Refusal } from '../../http/client.ts'
import { Problem } from '../../problem.ts'
import type { UploadObject } from '../contract.ts'
import { encodeKey } from '../shared/public-url.ts'
import { readElement } from '../shared/xml-path.ts'
import { type AccountKey, API_VERSION, signRequest } from './sign.ts'

/** Credentials: the account key, or a SAS token that was created with it. */
export type AzureAccess = { readonly key: AccountKey } | { readonly sasToken: string }

interface BlobRequest {
  readonly method: 'PUT' | 'HEAD' | 'DELETE'
  /** Name of the blob. */
  readonly name: string
  readonly query?: Readonly<Record<string, string>>
  /** Headers with lower-case names. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Body
  /** Statuses that are not errors. */
  readonly accept: readonly number[]
}

const MIB = 1024 * 1024
/** Maximum size of a blob that is sent in one request, in bytes. Larger blobs are sent as block uploads. */
const MAX_AT_ONCE = 64 * MIB
/** Minimum size of a block, in bytes. */
const BLOCK_BYTES = 8 * MIB
/** Maximum number of blocks of a blob, a limit of the service. */
const MAX_BLOCKS = 50_000
/** Number of attempts to send one block before the whole upload fails. */
const BLOCK_ATTEMPTS = 4
/** Clock skew above which an error mentions the clock, in seconds. The service rejects 15 minutes. */
const MAX_SKEW_S = 300

/**
 * The blobs of one container.
 *
 * @param containerUrl without a slash at the end
 * @param properties headers of all blobs: `x-ms-blob-…` and `x-ms-access-tier`
 */
export function createContainer(
  containerUrl: string,
  access: AzureAccess,
  properties: Readonly<Record<string, string>>,
  http: HttpClient,
) {
  async function send({ method, name, query, headers, body, accept }: BlobRequest, signal: AbortSignal) {
    const url = new URL(`${containerUrl}/${encodeKey(name)}`)
    for (const [parameter, value] of Object.entries(query ?? {})) url.searchParams.append(parameter, value)
    const all: Record<string, string> = {
      ...headers,
      ...(body && { 'content-length': String(body.size) }),
      'x-ms-version': API_VERSION,
      'x-ms-date': new Date().toUTCString(),
    }
    if ('key' in access) all['authorization'] = signRequest(method, url, all, access.key)
    else url.search = [url.search.slice(1), access.sasToken].filter(Boolean).join('&')
    const isAccepted = (status: number) => accept.includes(status)
    const reply = await http.send({ method, url, headers: all, body, accept: isAccepted, explain }, signal)
    if (reply.headers['x-ms-request-id'] !== undefined) return reply
    throw new Problem(`${url.host} returned ${reply.status}, but not a response of a blob service`, {
      advice: 'Check "endpoint".',
    })
  }

  /** Sends a block. The service removes blocks without a commit after a week. */
  const sendBlock = (name: string, blockid: string, body: Body, signal: AbortSignal) =>
    send(
      {
        method: 'PUT',
        name,
        query: { comp: 'block', blockid },
        headers: { 'content-type': 'application/octet-stream' },
        body,
        accept: [201],
      },
      signal,
    )

  async function putInBlocks(
    object: UploadObject,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<void> {
    const [name, upload] = [object.key, randomBytes(12).toString('hex')]
    const ids: string[] = []
    for (const block of divide(object, Math.max(BLOCK_BYTES, Math.ceil(object.size / MAX_BLOCKS)))) {
      // Block IDs must have the same length, and must differ from those of a concurrent upload to the same name.
      const id = Buffer.from(`${upload}-${String(ids.length + 1).padStart(5, '0')}`).toString('base64')
      await retry(() => sendBlock(name, id, block, signal), { attempts: BLOCK_ATTEMPTS }, signal)
      ids.push(id)
    }
    const list = ids.map(id => `<Uncommitted>${id}</Uncommitted>`).join('')
    const body = inMemory(Buffer.from(`<?xml version="1.0" encoding="utf-8"?><BlockList>${list}</BlockList>`))
    const query = { comp: 'blocklist' }
    const accept = [201, 400]
    const { status } = await send({ method: 'PUT', name, query, headers, body, accept }, signal)
    if (status === 400)
      throw new Problem('its blocks were discarded because another upload stored a blob with this name', {
        retryable: true,
      })
  }

  return {
    /** Stores a blob atomically. */
    async put(object: UploadObject, signal: AbortSignal): Promise<void> {
      const { key: name, contentType } = object
      const all = { ...properties, 'x-ms-blob-content-type': contentType }
      if (object.size > MAX_AT_ONCE)
        return putInBlocks(object, { ...all, 'content-type': 'application/xml' }, signal)
      const headers = { ...all, 'x-ms-blob-type': 'BlockBlob', 'content-type': contentType }
      await send({ method: 'PUT', name, headers, body: object, accept: [201] }, signal)
    },
    /** Checks the permission to upload with a block that is never committed, and so is invisible. */
    async check(signal: AbortSignal): Promise<void> {
      const name = `upload-server-${randomBytes(8).toString('hex')}`
      const probe = Buffer.from('probe')
      await sendBlock(name, probe.toString('base64'), inMemory(probe), signal)
    },
    async exists(name: string, signal: AbortSignal): Promise<boolean> {
      const { status } = await send({ method: 'HEAD', name, accept: [200, 404] }, signal)
      return status === 200
    },
    async remove(name: string, signal: AbortSignal): Promise<void> {
      const headers = { 'x-ms-delete-snapshots': 'include' }
      await send({ method: 'DELETE', name, headers, accept: [202, 404] }, signal)
    },
  }
}

const HINTS: Readonly<Record<string, string>> = {
  AuthenticationFailed: 'Check "account" and "accountKey". A "sasToken" may have expired.',
  AuthorizationFailure:
    'Check "accountKey" or "sasToken" (is it valid for this container?), and the network rules of the account.',
  AuthorizationPermissionMismatch: 'Give the "sasToken" the permissions read, create, write and delete.',
  AuthorizationResourceTypeMismatch: 'Use a "sasToken" for objects or for this container.',
  ContainerNotFound: 'Create the container first.',
  KeyBasedAuthenticationNotPermitted: 'Use a user delegation SAS as "sasToken".',
  LeaseIdMissing: 'Release the lease of the existing blob, or use another object key.',
}

function explain({ headers, text }: HttpReply): Refusal | undefined {
  const code = headers['x-ms-error-code'] ?? readElement(text, 'Code')
  if (code === undefined) return undefined
  const skewS = (Date.now() - Date.parse(headers['date'] ?? '')) / 1000
  if (code === 'AuthenticationFailed' && Math.abs(skewS) > MAX_SKEW_S) {
    const minutes = Math.round(Math.abs(skewS) / 60)
    return {
      reason: `${code}: the clock of this machine is ${minutes} minutes ${skewS > 0 ? 'fast' : 'slow'}`,
      advice: 'Set it, for example with NTP.',
    }
  }
  const advice = Object.hasOwn(HINTS, code) ? HINTS[code] : undefined
  // The message of a known code repeats the request, or says less than the advice.
  const message = advice === undefined && readElement(text, 'Message')?.split('\n')[0]?.replace(/\.$/, '')
  return { reason: [code, message].filter(Boolean).join(': '), advice }
}
