import type { Content } from '../../body.ts'
import type { HeldFile } from '../../files/held.ts'
import type { Spool } from '../../payload/spool.ts'

/** A file to upload: an object key and the bytes to store under it. It is also the body of a request. */
export interface UploadObject extends Content {
  /**
   * Object key, the path at the destination: `/`-separated, no leading slash, no empty, `.` or `..` segment, no control
   * character, at most 1024 bytes in UTF-8. Other Unicode characters are allowed. It is checked before a target gets it.
   */
  readonly key: string
  /** MIME type found in the bytes; `application/octet-stream` when unknown. */
  readonly contentType: string
  /** SHA-256 of the bytes, hex. */
  readonly sha256: string
  /**
   * Path of a private file with the bytes, if they are in a file. It is valid for this process and its child processes,
   * and must not be modified. A hard link to it shares bytes and mode with every other hard link. If it is undefined, the
   * bytes are in memory, and the chunks of `read` stay valid.
   */
  readonly path?: string | undefined
}

/** What a destination returns for a stored object. */
export interface Stored {
  /** Absolute http(s) URL, or one relative to this server's public URL (`files/Default/a.png`). */
  url: string
  /** URL that deletes the object when it is opened. If it needs another method, the page of the provider documents it. */
  deleteUrl?: string
}

/** A server whose host key is unknown. */
export interface UnknownHost {
  /** Its host key, as text for a person. */
  readonly shown: string
  /** Trusts the host key from now on. */
  trust(): Promise<void>
}

/** Files in OpenSSH's format with known host keys. */
export interface KnownHosts {
  /** The file to which new host keys are added. */
  readonly kept: string
  /** Files of other programs, which are only read, each with a description for messages. */
  readonly others: readonly { readonly path: string; readonly words: string }[]
}

/** A URL that gives access to an object until it expires. */
export interface SignedUrl {
  readonly url: string
  /** Lifetime in seconds. */
  readonly forS: number
}

/** How a target stores, where it differs from most others. */
export interface Traits {
  /** `put` is called for one object at a time. */
  readonly serial?: boolean
  /** Puts of one object at the same time leave it complete, as one of them. Uploads of the same bytes then don't wait. */
  readonly atomic?: boolean
  /** The destination names files itself, so that equal object keys replace nothing. */
  readonly namesFiles?: boolean
  /** Returns what is wrong with an object key that is valid elsewhere, as a phrase, or undefined. It is never passed on. */
  keyFault?(key: string): string | undefined
  /** URLs that `put` returns expire, and `sign` creates new ones for stored objects. */
  readonly linksExpire?: boolean
}

/** A provider with its options applied. Operations that it does not support are undefined; callers check for the method. */
export interface Target {
  /** Stores the object and replaces one with the same object key. Safe to call concurrently, except with the trait `serial`. */
  put(object: UploadObject, signal: AbortSignal): Promise<Stored>
  /** Returns whether an object with that key exists. `onConflict` and `dedupe` need it. */
  exists?(key: string, signal: AbortSignal): Promise<boolean>
  /** Removes an object; a missing one counts as removed. Used by `check`, `remove`, expiry and the tests, never by a route. */
  remove?(key: string, signal: AbortSignal): Promise<void>
  /**
   * Creates a signed URL for an object, which need not exist. `link` needs it.
   *
   * @param mostS maximum lifetime, in seconds
   */
  sign?(key: string, method: 'GET' | 'HEAD', mostS: number, signal: AbortSignal): Promise<SignedUrl>
  /** Verifies the URL and the credentials. Leaves nothing behind. */
  check?(signal: AbortSignal): Promise<void>
  close?(): Promise<void>
  /**
   * Canonical prefix of its objects: `location + key` identifies an object. Two targets that reach the same object must return
   * the same prefix, even if their options or names differ. It is stored in the database, so it must contain no secret, and
   * must not change when credentials change. Default: a prefix that no other destination has.
   */
  readonly location?: string
  readonly traits?: Traits
}

/** Members that only `local` and `sftp` have, and plugins don't. */
export interface Capabilities {
  /** `local`: a spool on the file system of the destination. Payloads are spooled there, so that `put` can link instead of copy. */
  readonly spool?: Spool
  /** `local`: opens a stored object that this server serves under /files/. Undefined if it does not exist. */
  locate?(key: string): Promise<HeldFile | undefined>
  /** `sftp`: returns the server if its host key is not trusted yet. Sends it no credentials. */
  findUnknownHost?(signal: AbortSignal): Promise<UnknownHost | undefined>
}

/** What `open` of a provider returns. */
export type OpenTarget = Target & Capabilities
