import type { Body } from '../../body.ts'
import { UploadError } from '../../errors.ts'
import type { HttpClient, HttpReply } from '../../http/client.ts'
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

/** Requests to the blobs of one container. */
export interface Container {
  /** @throws UploadError `destination_failed` */
  send(request: BlobRequest, signal: AbortSignal): Promise<HttpReply>
}

/** Maximum length of a blob name, in characters. */
const MAX_NAME = 1024
/** Clock skew above which an error mentions the clock, in seconds. The service rejects 15 minutes. */
const MAX_SKEW_S = 300

/** @param containerUrl without a slash at the end */
export function createContainer(containerUrl: string, access: AzureAccess, client: HttpClient): Container {
  return {
    async send({ method, name, query, headers, body, accept }, signal) {
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
      const reply = await client.send(
        {
          method,
          url,
          headers: all,
          body,
          accept: status => accept.includes(status),
          explain,
        },
        signal,
      )
      if (reply.headers['x-ms-request-id'] !== undefined) return reply
      throw new UploadError(
        'destination_failed',
        `${url.host} returned ${reply.status}, but not a response of a blob service. Check "endpoint".`,
      )
    },
  }
}

/** Rejects names that the service would shorten or reject. */
function checkName(name: string): string {
  const fault =
    name.length > MAX_NAME
      ? `it is longer than ${MAX_NAME} characters`
      : name.split('/').some(segment => segment.endsWith('.')) && 'a part of it ends with a dot'
  if (!fault) return name
  const message = `"${name.slice(0, 80)}" cannot be stored in Azure: ${fault}. Change the key template.`
  throw new UploadError('destination_failed', message)
}

const HINTS: Readonly<Record<string, string>> = {
  AuthenticationFailed: 'check "account" and "accountKey"; a "sasToken" may have expired.',
  AuthorizationFailure:
    'check "accountKey" or "sasToken" (is it valid for this container?), and the network rules of the account.',
  AuthorizationPermissionMismatch: 'give the "sasToken" the permissions read, create, write and delete.',
  AuthorizationResourceTypeMismatch: 'use a "sasToken" for objects or for this container.',
  ContainerNotFound: 'the container does not exist. Create it first.',
  KeyBasedAuthenticationNotPermitted:
    'the account does not accept account keys. Use a user delegation SAS as "sasToken".',
  LeaseIdMissing: 'the existing blob has an active lease. Release it, or use another object key.',
}

function explain(refusal: HttpReply): string | undefined {
  const { headers, text } = refusal
  const code = headers['x-ms-error-code'] ?? readElement(text, 'Code')
  if (code === undefined) return undefined
  const skewS = (Date.now() - Date.parse(headers['date'] ?? '')) / 1000
  if (code === 'AuthenticationFailed' && Math.abs(skewS) > MAX_SKEW_S) {
    const minutes = Math.round(Math.abs(skewS) / 60)
    return `${code}: the clock of this machine is ${minutes} minutes ${skewS > 0 ? 'fast' : 'slow'}. Set it, for example with NTP.`
  }
  const hint = Object.hasOwn(HINTS, code) ? HINTS[code] : readElement(text, 'Message')?.split('\n')[0]
  return `${code}: ${hint ?? 'no reason given.'}`
}
