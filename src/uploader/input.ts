import type { UploadError } from '../errors.ts'
import type { AddressScope } from '../http/addresses.ts'
import type { Payload } from '../payload/index.ts'
import type { KeyFacts } from '../payload/object-key.ts'
import type { PictureWish } from '../pictures/wish.ts'
import type { StoredFile } from '../store/contract.ts'
import type { Expires } from './expires.ts'

/** Kinds of input; a caller is admitted to some of them. */
export const SOURCES = ['form', 'url', 'path', 'clipboard'] as const
export type SourceKind = (typeof SOURCES)[number]

/** One thing to upload, before its bytes are there. `origin` goes into the answer as the client sent it. */
export type Input =
  | { readonly kind: 'form'; readonly origin: string; readonly payload: Payload | Unkept }
  | { readonly kind: 'data'; readonly origin: string; readonly bytes: Buffer }
  | { readonly kind: 'url'; readonly origin: string; readonly url: URL }
  | {
      readonly kind: 'path'
      readonly origin: string
      readonly path: string
      /** What it is called instead. */
      readonly name?: string
      /** Why it may not be uploaded, by where what was opened lies with symlinks resolved. */
      readonly faultOf?: ((real: string) => Promise<string | undefined>) | undefined
    }
  | { readonly kind: 'clipboard'; readonly origin: 'clipboard' }

/** What came, but could not be kept. */
export interface Unkept {
  readonly error: UploadError
  /** Of its bytes, hex; undefined when they were not read to their end. */
  readonly sha256: string | undefined
}

/** Most of an origin that is kept, in characters; no path is longer. Of a `data:` address the rest is in the file. */
const LONGEST_ORIGIN = 4096
const LONGEST_DATA_ORIGIN = 64

/** An origin as jobs and history keep it. Answers to the request itself repeat all of it. */
export function keptOrigin(origin: string): string {
  const most = /^data:/i.test(origin) ? LONGEST_DATA_ORIGIN : LONGEST_ORIGIN
  return origin.length > most ? `${origin.slice(0, most)}…` : origin
}

/** What a request wants beside being stored; all of it is optional, and checked before it comes here. */
export interface UploadOptions extends PictureWish, KeyFacts {
  readonly expires?: Expires | undefined
}

/** What callers without a key are called, in the history, too. */
export const KEYLESS: readonly string[] = ['loopback', 'anonymous', 'command line', 'mcp']

/** Who sends a request, and what that caller may name. Decided once, in routes/access.ts. */
export interface Caller {
  /** Name of the upload key, `loopback` or `anonymous`; goes into the log. */
  readonly name: string
  readonly admittedBy: 'loopback' | 'key' | 'anonymous'
  readonly sources: ReadonlySet<SourceKind>
  /** Directories below which paths may be named; undefined: any regular file but the server's own. */
  readonly roots: readonly string[] | undefined
  /** Which addresses URL inputs may reach beside public ones. */
  readonly addresses: AddressScope
  /** `provider` or `provider/configName` entries the caller may use; undefined: all. */
  readonly destinations: readonly string[] | undefined
}

/** What became of one input. `index` is its position in the request. */
export type Outcome =
  | ({ readonly ok: true } & StoredFile)
  | { readonly ok: false; readonly index: number; readonly origin: string; readonly error: UploadError }
