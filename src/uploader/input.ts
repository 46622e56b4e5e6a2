import { UploadError } from '../errors.ts'
import type { HeldFile } from '../files/held.ts'
import type { AddressScope } from '../http/addresses.ts'
import { type Payload, quoteFile, type RejectedBody } from '../payload/index.ts'
import type { KeyFacts } from '../payload/object-key.ts'
import type { RequestedImageOptions } from '../pictures/requested-options.ts'
import type { QuotaRule, StoredFile } from '../store/contract.ts'
import type { Expires } from './expiry.ts'

/** Kinds of input. A client may use some of them. */
export const SOURCES = ['form', 'url', 'path', 'clipboard'] as const
export type SourceKind = (typeof SOURCES)[number]

/** One thing to upload, before its bytes are there. The response repeats `origin` as the client sent it. */
export type Input =
  | { readonly kind: 'form'; readonly origin: string; readonly payload: Payload | RejectedBody }
  | { readonly kind: 'data'; readonly origin: string; readonly bytes: Buffer }
  | { readonly kind: 'url'; readonly origin: string; readonly url: URL }
  | {
      readonly kind: 'path'
      readonly origin: string
      readonly path: string
      /** File name to use instead. */
      readonly name?: string
      /** Opens the file, and rejects with an UploadError if it may not be uploaded. Default: the path is opened. */
      readonly open?: (() => Promise<HeldFile>) | undefined
    }
  | { readonly kind: 'clipboard'; readonly origin: 'clipboard' }

/** Maximum length of a saved origin, in characters. No path is longer, and the rest of a `data:` URI is in the file. */
const LONGEST_ORIGIN = 4096
const LONGEST_DATA_ORIGIN = 64

/** An origin as jobs and the history keep it. The response to the request repeats it completely. */
export function keptOrigin(origin: string): string {
  const most = /^data:/i.test(origin) ? LONGEST_DATA_ORIGIN : LONGEST_ORIGIN
  return origin.length > most ? `${origin.slice(0, most)}…` : origin
}

/** The options of a request. All are optional, and have been checked. */
export interface UploadOptions extends RequestedImageOptions, Pick<KeyFacts, 'path'> {
  readonly expires?: Expires | undefined
}

/** Names of clients without an upload key, also in the history. */
export const KEYLESS: readonly string[] = ['loopback', 'anonymous', 'command line', 'mcp']

/** The client of a request, and what it may upload. It is determined once, in routes/access.ts. */
export interface Caller {
  /** Name of the upload key, `proxy: USER`, `token NAME: USER`, `loopback` or `anonymous`. It is the identity, and goes into the log. */
  readonly name: string
  readonly admittedBy: 'loopback' | 'key' | 'proxy' | 'token' | 'anonymous'
  /** The person whom a reverse proxy or a token names. */
  readonly user?: string
  /** Whether a browser or a reverse proxy adds what identifies the client, also to requests of other sites' pages. */
  readonly isAddedByOthers?: boolean
  readonly sources: ReadonlySet<SourceKind>
  /** Allowed directories of file paths. Undefined: any regular file except those of the server. */
  readonly roots: readonly string[] | undefined
  /** IP addresses that URL inputs may connect to. */
  readonly addresses: AddressScope
  /** The only hosts, with or without a port, that may have private addresses. Default: all that `addresses` allows. */
  readonly privateHosts?: readonly string[]
  /** Destinations that the client may use, `provider` or `provider/configName`. Undefined: all. */
  readonly destinations: readonly string[] | undefined
  /** Maximum size of a file, bytes, if it is less than that of the server. */
  readonly fileSize?: number | undefined
  /** For each group of media types that must match: `image/*` or `image/png`, one of which is enough. */
  readonly types?: readonly (readonly string[])[]
  /** Quotas, all of which count. */
  readonly quotas?: readonly QuotaRule[]
}

/** The result of one input. `index` is its position in the request. */
export type Outcome =
  | ({ readonly ok: true } & StoredFile)
  | { readonly ok: false; readonly index: number; readonly origin: string; readonly error: UploadError }

/** Checks the media type of a file. @throws UploadError `type_forbidden` if the client may not upload it */
export function assertType({ name, contentType }: Payload, types: NonNullable<Caller['types']>): void {
  for (const allowed of types) {
    if (allowed.some(type => type === contentType || type === contentType.replace(/\/.*/, '/*'))) continue
    throw new UploadError(
      'type_forbidden',
      `${quoteFile(name)} is ${contentType} by its bytes. This client may upload ${allowed.join(', ')}.`,
    )
  }
}
