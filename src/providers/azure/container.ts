import type { Body } from '../../body.ts'
import type { HttpClient, HttpReply, Refusal } from '../../http/client.ts'
import { Problem } from '../../problem.ts'
import { encodeKey } from '../shared/public-url.ts'
import { readElement } from '../shared/xml-path.ts'
import { type AccountKey, API_VERSION, signRequest } from './sign.ts'

/** Credentials: the account key, or a SAS token that was created with it. */
export type AzureAccess = { readonly key: AccountKey } | { readonly sasToken: string }

export interface BlobRequest {
  readonly method: 'PUT' | 'HEAD' | 'DELETE'
  /** Name of the blob. */
  readonly name: string
  readonly query?: Readonly<Record<string, string>>
  /** Headers with lower-case names. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer | Body
  /** Statuses that are not errors. */
  readonly accept: readonly number[]
}

/** Maximum length of a blob name, in characters. */
const MAX_NAME = 1024
/** Clock skew above which an error mentions the clock, in seconds. The service rejects 15 minutes. */
const MAX_SKEW_S = 300

/** Sends a request to a blob of one container. @throws Problem */
export type SendBlob = (request: BlobRequest, signal: AbortSignal) => Promise<HttpReply>

/** @param containerUrl without a slash at the end */
export function createContainer(containerUrl: string, access: AzureAccess, http: HttpClient): SendBlob {
  return async ({ method, name, query, headers, body, accept }, signal) => {
    const url = new URL(`${containerUrl}/${encodeKey(checkName(name))}`)
    for (const [parameter, value] of Object.entries(query ?? {})) url.searchParams.append(parameter, value)
    const all: Record<string, string> = {
      ...headers,
      ...(body && { 'content-length': String('size' in body ? body.size : body.length) }),
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
}

/** Rejects names that the service would shorten or reject. */
function checkName(name: string): string {
  const fault =
    name.length > MAX_NAME
      ? `it is longer than ${MAX_NAME} characters`
      : name.split('/').some(segment => segment.endsWith('.')) && 'a part of it ends with a dot'
  if (!fault) return name
  throw new Problem(`Azure does not support its name: ${fault}`, { advice: 'Change the key template.' })
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

function explain(refusal: HttpReply): Refusal | undefined {
  const { headers, text } = refusal
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
