import { randomBytes } from 'node:crypto'
import { type Body, inMemory } from '../../body.ts'
import type { HttpClient, HttpReply, Refusal } from '../../http/client.ts'
import { Problem } from '../../problem.ts'
import type { UploadObject } from '../contract.ts'
import { type Causes, causeOf } from '../shared/causes.ts'
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

  return {
    /** Stores a blob atomically. The service accepts 5000 MiB in one request. */
    async put(object: UploadObject, signal: AbortSignal): Promise<void> {
      const { key: name, contentType } = object
      const type = { 'content-type': contentType, 'x-ms-blob-content-type': contentType }
      const headers = { ...properties, ...type, 'x-ms-blob-type': 'BlockBlob' }
      await send({ method: 'PUT', name, headers, body: object, accept: [201] }, signal)
    },
    /** Checks the permission to upload with a block that is never committed, and so is invisible for a week, then deleted. */
    async check(signal: AbortSignal): Promise<void> {
      const name = `upload-server-${randomBytes(8).toString('hex')}`
      const probe = Buffer.from('probe')
      const query = { comp: 'block', blockid: probe.toString('base64') }
      const headers = { 'content-type': 'application/octet-stream' }
      await send({ method: 'PUT', name, query, headers, body: inMemory(probe), accept: [201] }, signal)
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

/** Causes by error code of the service. */
const CAUSES: Causes = {
  AuthenticationFailed: { advice: 'Check "account" and "accountKey". A "sasToken" may have expired.' },
  AuthorizationFailure: {
    advice:
      'Check "accountKey" or "sasToken" (is it valid for this container?), and the network rules of the account.',
  },
  AuthorizationPermissionMismatch: {
    advice: 'Give the "sasToken" the permissions read, create, write and delete.',
  },
  AuthorizationResourceTypeMismatch: { advice: 'Use a "sasToken" for objects or for this container.' },
  ContainerNotFound: { advice: 'Create the container first.' },
  KeyBasedAuthenticationNotPermitted: { advice: 'Use a user delegation SAS as "sasToken".' },
  RequestBodyTooLarge: { advice: 'Send a smaller file: the limit is 5,000 MiB.' },
  LeaseIdMissing: { advice: 'Release the lease of the existing blob, or use another object key.' },
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
  const { advice } = causeOf(CAUSES, code)
  // The message of a known code repeats the request, or says less than the advice.
  const message = advice === undefined && readElement(text, 'Message')?.split('\n')[0]?.replace(/\.$/, '')
  return { reason: [code, message].filter(Boolean).join(': '), advice }
}
